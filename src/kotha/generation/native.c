/* One decoding step of a GPT on a CPU: a token for each row goes through all blocks and the head in a single call.

   With one token per step, every weight is read and used once, so the time depends on the size of the weights. Calls
   through Python and torch would take several times as long. With many rows, each weight is reused. This is a second
   implementation of the block; tests check that both give the same results. It uses the vector extensions of GCC and
   Clang, but no intrinsics: -march=native selects the machine's instructions, and the compiler recognizes dot products
   of bytes. All threads execute the step together and synchronize after each product and after attention. Every thread
   does the small work (norms, rounding, sums) itself instead of waiting for another one.

   A row's result is identical bit for bit regardless of the other rows and of the number of threads, because every sum
   is computed by one thread in a fixed order. Generated text therefore does not depend on other requests.

   Shapes as in the model: B rows, C d_model, D d_head, S positions; caches are (cache rows, S, n_kv_heads, D). In
   generation, each row is the next token of the text in its cache row; in prefill, rows are consecutive tokens. */

#include <math.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_thread_num() 0
#define omp_get_max_threads() 1
#endif

enum { NONE, RELU, GELU, GELU_TANH, SILU };

typedef struct { /* y = x W^T + bias; with a scale, W is int8 and x is quantized to int8 too */
    const void *weight;
    const float *scale, *bias;
    long outs, width;
} Matrix;

typedef struct { /* LayerNorm, or RMSNorm if there is no bias; no norm if there is no weight */
    const float *weight, *bias;
    float eps;
} Norm;

typedef struct {
    Matrix joined, output, up, gate, down;
    Norm attention_norm, feedforward_norm, query_norm, key_norm;
    const long *first;         /* (n_kv_heads + 1): the first query head of each key head, and the total */
    long n_heads, n_kv_heads;  /* per layer, because heads can be removed */
} Layer;

typedef struct {
    const Layer *layers;
    Matrix head;
    Norm last;
    long n_layers, d_model, d_head, d_ff;
    int pre_norm, activation;
} Model;

typedef struct { /* keys and values of each layer: (cache rows, size, n_kv_heads, D) */
    float **keys, **values;
    long size;
} Cache;

typedef struct { /* for each row: its cache row (NULL: the same index), its position and its rotary angles */
    const long *cache_rows, *lengths;
    const float *cosine, *sine;
    long count;
} Rows;

typedef struct { /* buffers shared by all threads, with one line per row */
    float *joined, *mixed, *inner, *gate, *out;
} Shared;

typedef struct { /* buffers of one thread: its copy of x, the input to a part, and the quantized input */
    float *x, *read, *scale;
    int8_t *quantized;
} Own;

static float activate(float x, int kind) {
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
    const float inverse = isinf(square) ? NAN : 1 / sqrtf(square / width + norm->eps); /* an overflow reaches the logits */
    for (long k = 0; k < width; k++) y[k] = (x[k] - mean) * inverse * norm->weight[k] + (norm->bias ? norm->bias[k] : 0);
}

/* Quantize a row of x to integers up to 127; return the scale. */
static float round_row(const float *restrict x, int8_t *restrict quantized, long width) {
    float largest = 0;
    for (long k = 0; k < width; k++) largest = fmaxf(largest, fabsf(x[k]));
    const float inverse = largest > 0 ? 127 / largest : 0;
    for (long k = 0; k < width; k++) quantized[k] = (int8_t)lrintf(x[k] * inverse);
    return largest / 127;
}

static void round_rows(const Matrix *matrix, const float *x, const Own *own, long rows) {
    if (!matrix->scale) return;
    const long width = matrix->width;
    for (long m = 0; m < rows; m++) own->scale[m] = round_row(x + m * width, own->quantized + m * width, width);
}

/* Products are computed in tiles of four rows of weights by a few rows of x: as many independent sums as there are
   registers, so that no sum waits for another, and each number is reused after it is loaded. */
enum { OUTS = 4 };
#if defined(__AVX512F__)
enum { LANES = 16, ROWS = 4 };
#elif defined(__AVX__)
enum { LANES = 8, ROWS = 2 };
#else
enum { LANES = 4, ROWS = 4 };
#endif
enum { LINE = 64 / sizeof(float) }; /* floats in a cache line */
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

/* Add up the lanes of four sums. Not inlined, because two inlined copies could add in different orders. */
static __attribute__((noinline)) void sum_lanes(const Lanes *in_flight, float *sums) {
    for (int i = 0; i < OUTS; i++) {
        sums[i] = 0;
        for (int lane = 0; lane < LANES; lane++) sums[i] += in_flight[i][lane];
    }
}

/* Four rows of weights and some of x -> sums (rows, 4). The first pass over these weights also prefetches the next four
   rows, because hardware prefetchers do not follow four streams. */
static inline __attribute__((always_inline)) void tile(const float *const w[OUTS], const float *x, long width,
                                                       float *sums, const int rows, const int first) {
    Lanes in_flight[ROWS][OUTS] = {{{0}}};
    const long whole = width / LANES * LANES;
    for (long k = 0; k < whole; k += LANES) {
        Lanes four[OUTS];
#pragma GCC unroll 4
        for (int i = 0; i < OUTS; i++) {
            if (first && k % LINE == 0) __builtin_prefetch(w[i] + OUTS * width + k);
            four[i] = *(const Lanes *)(w[i] + k);
        }
#pragma GCC unroll 4
        for (int m = 0; m < rows; m++) {
            const Lanes read = *(const Lanes *)(x + m * width + k);
#pragma GCC unroll 4
            for (int i = 0; i < OUTS; i++) in_flight[m][i] += four[i] * read;
        }
    }
#pragma GCC unroll 4
    for (int m = 0; m < rows; m++) {
        sum_lanes(in_flight[m], sums + m * OUTS);
        for (long k = whole; k < width; k++)
            for (int i = 0; i < OUTS; i++) sums[m * OUTS + i] += w[i][k] * x[m * width + k];
    }
}

static void sums_of(const float *weight, const long n[OUTS], const float *x, long width, float *sums, int rows,
                    int first) {
    const float *const w[OUTS] = {weight + n[0] * width, weight + n[1] * width, weight + n[2] * width,
                                  weight + n[3] * width};
    if (rows == ROWS && first) tile(w, x, width, sums, ROWS, 1);
    else if (rows == ROWS) tile(w, x, width, sums, ROWS, 0);
    else for (int m = 0; m < rows; m++) tile(w, x + m * width, width, sums + m * OUTS, 1, 1);
}

/* The same for int8, where the order of additions does not matter. The compiler uses the machine's dot products of
   bytes, which have their own lanes. */
static inline __attribute__((always_inline)) void int8_tile(const int8_t *const w[OUTS], const int8_t *restrict x,
                                                            long width, int32_t *sums, const int rows) {
    const int8_t *restrict w0 = w[0], *restrict w1 = w[1], *restrict w2 = w[2], *restrict w3 = w[3];
    int32_t in_flight[ROWS][OUTS] = {{0}};
    for (long k = 0; k < width; k++)
#pragma GCC unroll 4
        for (int m = 0; m < rows; m++) {
            const int32_t read = x[m * width + k];
            in_flight[m][0] += w0[k] * read;
            in_flight[m][1] += w1[k] * read;
            in_flight[m][2] += w2[k] * read;
            in_flight[m][3] += w3[k] * read;
        }
    for (int m = 0; m < rows; m++)
        for (int i = 0; i < OUTS; i++) sums[m * OUTS + i] = in_flight[m][i];
}

static void int8_sums_of(const int8_t *weight, const long n[OUTS], const int8_t *x, long width, int32_t *sums,
                         int rows) {
    const int8_t *const w[OUTS] = {weight + n[0] * width, weight + n[1] * width, weight + n[2] * width,
                                   weight + n[3] * width};
    if (rows == ROWS) int8_tile(w, x, width, sums, ROWS);
    else for (int m = 0; m < rows; m++) int8_tile(w, x + m * width, width, sums + m * OUTS, 1);
}

/* Scale four integer sums of a row. Not inlined, like `sum_lanes`: a version vectorized for sixteen sums could multiply
   in another order than one for four, and the result of a row would depend on its neighbors. */
static __attribute__((noinline)) void scale_sums(const int32_t *integers, float of_row, const float *scale,
                                                 const long n[OUTS], float *sums) {
    for (int i = 0; i < OUTS; i++) sums[i] = integers[i] * of_row * scale[n[i]];
}

static void product(const Matrix *matrix, const float *x, const Own *own, float *y, long rows, int activation) {
    const long outs = matrix->outs, width = matrix->width;
#pragma omp for schedule(dynamic, 16)
    for (long group = 0; group < (outs + OUTS - 1) / OUTS; group++) {
        long n[OUTS]; /* the last group may overlap with the previous one */
        for (int i = 0; i < OUTS; i++) {
            const long place = group * OUTS + OUTS > outs ? outs - OUTS + i : group * OUTS + i;
            n[i] = place < 0 ? 0 : place;
        }
        for (long begin = 0; begin < rows; begin += ROWS) {
            const int some = rows - begin < ROWS ? (int)(rows - begin) : ROWS;
            float sums[ROWS * OUTS];
            if (matrix->scale) {
                int32_t integers[ROWS * OUTS];
                int8_sums_of(matrix->weight, n, own->quantized + begin * width, width, integers, some);
                for (int m = 0; m < some; m++)
                    scale_sums(integers + m * OUTS, own->scale[begin + m], matrix->scale, n, sums + m * OUTS);
            } else sums_of(matrix->weight, n, x + begin * width, width, sums, some, begin == 0);
            for (int j = 0; j < some * OUTS; j++)
                y[(begin + j / OUTS) * outs + n[j % OUTS]] =
                    activate(sums[j] + (matrix->bias ? matrix->bias[n[j % OUTS]] : 0), activation);
        }
    }
}

static void rotate(float *head, const float *cosine, const float *sine, long half) {
    for (long k = 0; k < half; k++) {
        const float first = head[k], second = head[k + half];
        head[k] = first * cosine[k] - second * sine[k];
        head[k + half] = second * cosine[k] + first * sine[k];
    }
}

static void norm_and_rotate(const Norm *norm, float *head, const Rows *rows, long m, long width) {
    if (norm->weight) normalize(norm, head, head, width);
    if (rows->cosine) rotate(head, rows->cosine + m * (width / 2), rows->sine + m * (width / 2), width / 2);
}

/* A weighted sum of values, kept in registers so that each result is written only once. */
enum { WIDE = 8, AHEAD = 8 };

static inline __attribute__((always_inline)) void weighted_sum(const float *weights, const float *values, long length,
                                                               long stride, float *y, const int wide) {
    Lanes in_flight[WIDE] = {{0}};
    for (long s = 0; s < length; s++) {
        for (int i = 0; i < wide; i += LINE / LANES) __builtin_prefetch(values + (s + AHEAD) * stride + i * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < wide; i++) in_flight[i] += weights[s] * *(const Lanes *)(values + s * stride + i * LANES);
    }
#pragma GCC unroll 8
    for (int i = 0; i < wide; i++) *(Lanes *)(y + i * LANES) = in_flight[i];
}

/* Attention of one head and row over `length` keys and values, which are `stride` numbers apart. */
static void attend_head(const float *query, const float *keys, const float *values, long length, long stride,
                        long width, float *y) {
    float weights[length + OUTS], largest = -3e38f, total = 0;
    const float root = 1 / sqrtf(width);
    for (long s = 0; s < length; s += OUTS) { /* the last group may repeat a key */
        const float *four[OUTS];
        for (int i = 0; i < OUTS; i++) four[i] = keys + (s + i < length ? s + i : length - 1) * stride;
        for (int i = 0; i < OUTS; i++)
            for (long k = 0; k < width; k += LINE) __builtin_prefetch(keys + (s + i + AHEAD) * stride + k);
        tile(four, query, width, weights + s, 1, 0);
    }
    for (long s = 0; s < length; s++) largest = fmaxf(largest, weights[s]);
    for (long s = 0; s < length; s++) {
        weights[s] = expf((weights[s] - largest) * root);
        total += weights[s];
    }
    for (long s = 0; s < length; s++) weights[s] /= total;
    long k = 0;
    for (; k + WIDE * LANES <= width; k += WIDE * LANES) weighted_sum(weights, values + k, length, stride, y + k, WIDE);
    for (; k + LANES <= width; k += LANES) weighted_sum(weights, values + k, length, stride, y + k, 1);
    for (; k < width; k++) {
        y[k] = 0;
        for (long s = 0; s < length; s++) y[k] += weights[s] * values[s * stride + k];
    }
}

/* Store the keys and values of all rows, then compute attention. Both loops assign a key head of a row and its query
   heads to the same thread, so a barrier is needed only if several rows belong to one text. */
static void attend(const Model *model, const Layer *layer, const Cache *cache, const Shared *all, const Rows *rows,
                   long number) {
    const long width = model->d_head, n_shared = layer->n_kv_heads, stride = n_shared * width;
    const long jobs = rows->count * n_shared;
    float *const keys = cache->keys[number], *const values = cache->values[number];
#pragma omp for schedule(static) nowait
    for (long job = 0; job < jobs; job++) {
        const long m = job / n_shared, shared = job % n_shared, cache_row = rows->cache_rows ? rows->cache_rows[m] : m;
        float *key = all->joined + m * layer->joined.outs + (layer->n_heads + shared) * width, *value = key + stride;
        const long kept = (cache_row * cache->size + rows->lengths[m]) * stride + shared * width;
        norm_and_rotate(&layer->key_norm, key, rows, m, width);
        for (long k = 0; k < width; k++) keys[kept + k] = key[k], values[kept + k] = value[k];
    }
    if (rows->cache_rows) {
#pragma omp barrier
    }
#pragma omp for schedule(static)
    for (long job = 0; job < jobs; job++) {
        const long m = job / n_shared, shared = job % n_shared, cache_row = rows->cache_rows ? rows->cache_rows[m] : m;
        const long begin = cache_row * cache->size * stride + shared * width;
        for (long head = layer->first[shared]; head < layer->first[shared + 1]; head++) {
            float *query = all->joined + m * layer->joined.outs + head * width;
            norm_and_rotate(&layer->query_norm, query, rows, m, width);
            attend_head(query, keys + begin, values + begin, rows->lengths[m] + 1, stride, width,
                all->mixed + (m * layer->n_heads + head) * width);
        }
    }
}

/* The input to a part: x, normalized with pre-norm, and quantized for an int8 matrix. */
static void part_input(const Model *model, const Norm *norm, const Matrix *reader, const Own *own, long rows) {
    const long width = model->d_model;
    for (long m = 0; m < rows; m++) {
        if (model->pre_norm) normalize(norm, own->x + m * width, own->read + m * width, width);
        else for (long k = 0; k < width; k++) own->read[m * width + k] = own->x[m * width + k];
    }
    round_rows(reader, own->read, own, rows);
}

/* Add a part's output to x; normalize the sum with post-norm. */
static void add_residual(const Model *model, const Norm *norm, const float *out, const Own *own, long rows) {
    const long width = model->d_model;
    for (long k = 0; k < rows * width; k++) own->x[k] += out[k];
    if (!model->pre_norm)
        for (long m = 0; m < rows; m++) normalize(norm, own->x + m * width, own->x + m * width, width);
}

static void block(const Model *model, const Cache *cache, const Own *own, const Shared *all, const Rows *given,
                  long number) {
    const Layer *layer = &model->layers[number];
    const long rows = given->count;
    part_input(model, &layer->attention_norm, &layer->joined, own, rows);
    product(&layer->joined, own->read, own, all->joined, rows, NONE);
    attend(model, layer, cache, all, given, number);
    round_rows(&layer->output, all->mixed, own, rows);
    product(&layer->output, all->mixed, own, all->out, rows, NONE);
    add_residual(model, &layer->attention_norm, all->out, own, rows);
    part_input(model, &layer->feedforward_norm, &layer->up, own, rows);
    const int gated = layer->gate.weight != 0;
    product(&layer->up, own->read, own, all->inner, rows, gated ? NONE : model->activation);
    if (gated) product(&layer->gate, own->read, own, all->gate, rows, SILU);
    for (long k = 0; k < rows * model->d_ff; k++) own->read[k] = all->inner[k] * (gated ? all->gate[k] : 1);
    round_rows(&layer->down, own->read, own, rows);
    product(&layer->down, own->read, own, all->out, rows, NONE);
    add_residual(model, &layer->feedforward_norm, all->out, own, rows);
}

/* x (B, C) -> logits (B, V); if logits is NULL, only the cache is filled. cosine and sine are (B, D/2) or NULL; owns
   has one element per thread. */
void step(const Model *model, const Cache *cache, const Rows *given, const float *x, const Shared *all, const Own *owns,
          float *logits, int threads) {
    const long rows = given->count, width = model->d_model;
#pragma omp parallel num_threads(threads)
    {
        const Own *own = owns + omp_get_thread_num();
        for (long k = 0; k < rows * width; k++) own->x[k] = x[k];
        for (long number = 0; number < model->n_layers; number++) block(model, cache, own, all, given, number);
        if (logits) {
            if (model->last.weight)
                for (long m = 0; m < rows; m++) normalize(&model->last, own->x + m * width, own->x + m * width, width);
            round_rows(&model->head, own->x, own, rows);
            product(&model->head, own->x, own, logits, rows, NONE);
        }
    }
}

int most_threads(void) { return omp_get_max_threads(); }
