/* One step of a GPT on a CPU: a token for each row goes through all blocks and the head, without a call in between.

   At one token a step every weight is read once and used once, so the bytes of the weights bound the time, and what
   comes on top is the price of calls: through Python and torch it is several times the reading. Hence this second
   writing of THE block, held equal to the first by tests. Plain C on purpose: with -O3 -march=native a compiler turns
   the inner loops into the machine's own dot products. All threads walk through the step together and meet five times
   a block: small work (norms, rounding, sums) every thread does for itself rather than wait for another to do it.

   Shapes as in the model: B rows, C d_model, D d_head, S positions; caches are (rows, S, n_kv_heads, D). */

#include <math.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_thread_num() 0
#endif

enum { NONE, RELU, GELU, GELU_TANH, SILU };

typedef struct { /* y = x W^T + bias; with a scale W holds whole numbers up to 127, and x is rounded to such too */
    const void *weight;
    const float *scale, *bias;
    long outs, width;
} Matrix;

typedef struct { /* LayerNorm, or without a bias RMSNorm; without a weight nothing */
    const float *weight, *bias;
    float eps;
} Norm;

typedef struct {
    Matrix joined, output, up, gate, down;
    Norm attention_norm, feedforward_norm, query_norm, key_norm;
    float *keys, *values;
    const long *first;         /* (n_kv_heads + 1): where the query heads of each key head begin, and all end */
    long n_heads, n_kv_heads;  /* a layer's own: heads can be removed */
} Layer;

typedef struct {
    const Layer *layers;
    Matrix head;
    Norm last;
    long n_layers, d_model, d_head, d_ff, size;
    int pre_norm, activation;
} Model;

typedef struct { /* room for what all threads make together, a row for each row */
    float *joined, *mixed, *inner, *gate, *out;
} Shared;

typedef struct { /* room of one thread: its copy of x, what a part reads, and that in whole numbers */
    float *x, *read, *scale;
    int8_t *whole;
} Own;

static float bend(float x, int kind) {
    switch (kind) {
    case RELU: return x > 0 ? x : 0;
    case GELU: return 0.5f * x * (1 + erff(x * 0.70710678f));
    case GELU_TANH: return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case SILU: return x / (1 + expf(-x));
    default: return x;
    }
}

static void normalize(const Norm *norm, const float *x, float *y, long width) {
    float mean = 0, square = 0;
    if (norm->bias) {
        for (long k = 0; k < width; k++) mean += x[k];
        mean /= width;
    }
    for (long k = 0; k < width; k++) square += (x[k] - mean) * (x[k] - mean);
    const float inverse = 1 / sqrtf(square / width + norm->eps);
    for (long k = 0; k < width; k++) y[k] = (x[k] - mean) * inverse * norm->weight[k] + (norm->bias ? norm->bias[k] : 0);
}

/* A row of x in whole numbers up to 127, and what to multiply them by to get it back. */
static float round_row(const float *restrict x, int8_t *restrict whole, long width) {
    float largest = 0;
    for (long k = 0; k < width; k++) largest = fmaxf(largest, fabsf(x[k]));
    const float inverse = largest > 0 ? 127 / largest : 0;
    for (long k = 0; k < width; k++) whole[k] = (int8_t)lrintf(x[k] * inverse);
    return largest / 127;
}

static void round_rows(const Matrix *matrix, const float *x, const Own *own, long rows) {
    if (!matrix->scale) return;
    const long width = matrix->width;
    for (long m = 0; m < rows; m++) own->scale[m] = round_row(x + m * width, own->whole + m * width, width);
}

/* A row of weights and a row of x. One row after the other is one long walk through memory, as a processor likes to
   read ahead; the lanes are sums in flight, without which each would wait for the one before it. */
enum { LANES = 32 };

static float dot(const float *restrict w, const float *restrict x, long width) {
    float sums[LANES] = {0}, sum = 0;
    long k = 0;
    for (; k + LANES <= width; k += LANES)
#pragma GCC unroll 32
        for (int lane = 0; lane < LANES; lane++) sums[lane] += w[k + lane] * x[k + lane];
    for (; k < width; k++) sum += w[k] * x[k];
    for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
    return sum;
}

/* The same in whole numbers, four rows at a time: the machine's dot products of bytes have lanes of their own, and x is
   read once for all four. */
static void four_dots(const int8_t *weight, const long n[4], const int8_t *restrict x, long width, int32_t sums[4]) {
    const int8_t *restrict w0 = weight + n[0] * width, *restrict w1 = weight + n[1] * width;
    const int8_t *restrict w2 = weight + n[2] * width, *restrict w3 = weight + n[3] * width;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (long k = 0; k < width; k++) {
        s0 += (int32_t)w0[k] * x[k];
        s1 += (int32_t)w1[k] * x[k];
        s2 += (int32_t)w2[k] * x[k];
        s3 += (int32_t)w3[k] * x[k];
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

static void product(const Matrix *matrix, const float *x, const Own *own, float *y, long rows, int activation) {
    const long outs = matrix->outs, width = matrix->width;
#pragma omp for schedule(dynamic, 16)
    for (long group = 0; group < (outs + 3) / 4; group++) {
        long n[4]; /* the last four may overlap with those before */
        for (int i = 0; i < 4; i++) {
            const long place = group * 4 + 4 > outs ? outs - 4 + i : group * 4 + i;
            n[i] = place < 0 ? 0 : place;
        }
        for (long m = 0; m < rows; m++) {
            float four[4];
            if (matrix->scale) {
                int32_t sums[4];
                four_dots(matrix->weight, n, own->whole + m * width, width, sums);
                for (int i = 0; i < 4; i++) four[i] = sums[i] * own->scale[m] * matrix->scale[n[i]];
            } else {
                const float *weight = matrix->weight;
                for (int i = 0; i < 4; i++) four[i] = dot(weight + n[i] * width, x + m * width, width);
            }
            for (int i = 0; i < 4; i++)
                y[m * outs + n[i]] = bend(four[i] + (matrix->bias ? matrix->bias[n[i]] : 0), activation);
        }
    }
}

static void turn(float *head, const float *cosine, const float *sine, long half) {
    for (long k = 0; k < half; k++) {
        const float first = head[k], second = head[k + half];
        head[k] = first * cosine[k] - second * sine[k];
        head[k + half] = second * cosine[k] + first * sine[k];
    }
}

static void settle(const Norm *norm, float *head, const float *cosine, const float *sine, long width) {
    if (norm->weight) normalize(norm, head, head, width);
    if (cosine) turn(head, cosine, sine, width / 2);
}

/* One head of one row looks at what the row has read. */
static void mix(const Model *model, const Layer *layer, const float *query, long row, long shared, long length, float *y) {
    const long width = model->d_head, stride = layer->n_kv_heads * width;
    const float *keys = layer->keys + row * model->size * stride + shared * width;
    const float *values = layer->values + row * model->size * stride + shared * width;
    float weights[length], largest = -3e38f, total = 0;
    for (long s = 0; s < length; s++) {
        float score = 0;
        for (long k = 0; k < width; k++) score += query[k] * keys[s * stride + k];
        weights[s] = score / sqrtf(width);
        largest = fmaxf(largest, weights[s]);
    }
    for (long k = 0; k < width; k++) y[k] = 0;
    for (long s = 0; s < length; s++) {
        const float weight = expf(weights[s] - largest);
        total += weight;
        for (long k = 0; k < width; k++) y[k] += weight * values[s * stride + k];
    }
    for (long k = 0; k < width; k++) y[k] /= total;
}

/* One key head of one row, and the query heads that share it: normed, turned, kept, and looked with. */
static void attend(const Model *model, const Layer *layer, float *row, float *mixed, long m, long shared, long length,
                   const float *cosine, const float *sine) {
    const long width = model->d_head;
    float *key = row + (layer->n_heads + shared) * width, *value = key + layer->n_kv_heads * width;
    const long kept = ((m * model->size + length) * layer->n_kv_heads + shared) * width;
    settle(&layer->key_norm, key, cosine, sine, width);
    for (long k = 0; k < width; k++) layer->keys[kept + k] = key[k], layer->values[kept + k] = value[k];
    for (long head = layer->first[shared]; head < layer->first[shared + 1]; head++) {
        settle(&layer->query_norm, row + head * width, cosine, sine, width);
        mix(model, layer, row + head * width, m, shared, length + 1, mixed + head * width);
    }
}

/* What a part reads: x, normed where norms come first; rounded where its matrix wants it so. */
static void enter(const Model *model, const Norm *norm, const Matrix *reader, const Own *own, long rows) {
    const long width = model->d_model;
    for (long m = 0; m < rows; m++) {
        if (model->pre_norm) normalize(norm, own->x + m * width, own->read + m * width, width);
        else for (long k = 0; k < width; k++) own->read[m * width + k] = own->x[m * width + k];
    }
    round_rows(reader, own->read, own, rows);
}

/* The way around a part: x and what it said, normed where norms come last. */
static void leave(const Model *model, const Norm *norm, const float *out, const Own *own, long rows) {
    const long width = model->d_model;
    for (long k = 0; k < rows * width; k++) own->x[k] += out[k];
    if (!model->pre_norm)
        for (long m = 0; m < rows; m++) normalize(norm, own->x + m * width, own->x + m * width, width);
}

static void block(const Model *model, const Layer *layer, const Own *own, const Shared *all, long rows,
                  const long *lengths, const float *cosine, const float *sine) {
    const long half = model->d_head / 2, heads = layer->n_heads * model->d_head;
    enter(model, &layer->attention_norm, &layer->joined, own, rows);
    product(&layer->joined, own->read, own, all->joined, rows, NONE);
#pragma omp for schedule(static)
    for (long job = 0; job < rows * layer->n_kv_heads; job++) {
        const long m = job / layer->n_kv_heads;
        attend(model, layer, all->joined + m * layer->joined.outs, all->mixed + m * heads, m, job % layer->n_kv_heads,
               lengths[m], cosine ? cosine + m * half : 0, cosine ? sine + m * half : 0);
    }
    round_rows(&layer->output, all->mixed, own, rows);
    product(&layer->output, all->mixed, own, all->out, rows, NONE);
    leave(model, &layer->attention_norm, all->out, own, rows);
    enter(model, &layer->feedforward_norm, &layer->up, own, rows);
    const int gated = layer->gate.weight != 0;
    product(&layer->up, own->read, own, all->inner, rows, gated ? NONE : model->activation);
    if (gated) product(&layer->gate, own->read, own, all->gate, rows, SILU);
    for (long k = 0; k < rows * model->d_ff; k++) own->read[k] = all->inner[k] * (gated ? all->gate[k] : 1);
    round_rows(&layer->down, own->read, own, rows);
    product(&layer->down, own->read, own, all->out, rows, NONE);
    leave(model, &layer->feedforward_norm, all->out, own, rows);
}

/* x (B, C) -> logits (B, V); lengths (B) is what each row has read, cosine and sine (B, D/2) or NULL.
   owns has a room for each thread. */
void step(const Model *model, const float *x, const long *lengths, const float *cosine, const float *sine,
          const Shared *all, const Own *owns, float *logits, long rows, int threads) {
#pragma omp parallel num_threads(threads)
    {
        const Own *own = owns + omp_get_thread_num();
        for (long k = 0; k < rows * model->d_model; k++) own->x[k] = x[k];
        for (long i = 0; i < model->n_layers; i++)
            block(model, &model->layers[i], own, all, rows, lengths, cosine, sine);
        if (model->last.weight)
            for (long m = 0; m < rows; m++)
                normalize(&model->last, own->x + m * model->d_model, own->x + m * model->d_model, model->d_model);
        round_rows(&model->head, own->x, own, rows);
        product(&model->head, own->x, own, logits, rows, NONE);
    }
}

/* x (rows, width) -> y (rows, outs): one product alone; own has room for whole numbers. */
void linear(const Matrix *matrix, const float *x, const Own *own, float *y, long rows, int threads) {
    round_rows(matrix, x, own, rows);
#pragma omp parallel num_threads(threads) if (rows * matrix->outs * matrix->width >= 1 << 19)
    product(matrix, x, own, y, rows, NONE);
}
