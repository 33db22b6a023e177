/* One step of a GPT on a CPU: a token for each row goes through all blocks and the head, without a call in between.

   At one token a step every weight is read once and used once, so the bytes of the weights bound the time, and what
   comes on top is the price of calls: through Python and torch it is several times the reading. With many rows a
   weight that was read is used for several. Hence this second writing of THE block, held equal to the first by tests.
   C with the vectors of GCC and Clang and no machine's own instructions: -march=native makes them those of the machine,
   and the dot products of bytes a compiler finds by itself. All threads walk through the step together and meet after
   each product and after attention: small work (norms, rounding, sums) every thread does for itself rather than wait
   for another to do it.

   A row's numbers are the same to the last bit whatever other rows there are and however many threads: every sum is
   made by one thread, in one order. So a text does not depend on who else is being written to.

   Shapes as in the model: B rows, C d_model, D d_head, S positions; caches are (seats, S, n_kv_heads, D). When texts are
   written, each row is the next token of the text in its seat; when prompts are read, rows are tokens one after another. */

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
    const long *first;         /* (n_kv_heads + 1): where the query heads of each key head begin, and all end */
    long n_heads, n_kv_heads;  /* a layer's own: heads can be removed */
} Layer;

typedef struct {
    const Layer *layers;
    Matrix head;
    Norm last;
    long n_layers, d_model, d_head, d_ff;
    int pre_norm, activation;
} Model;

typedef struct { /* what was read: for each layer (seats, size, n_kv_heads, D) */
    float **keys, **values;
    long size;
} Cache;

typedef struct { /* the rows: whose text each is part of (NULL: its own), how much that has before it, and its turn */
    const long *seats, *lengths;
    const float *cosine, *sine;
    long count;
} Rows;

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

/* Products are made in tiles, four rows of weights by a few rows of x: as many sums in flight as there are registers,
   so that none waits for the one before it, and each number that was read is used several times. */
enum { OUTS = 4 };
#if defined(__AVX512F__)
enum { LANES = 16, ROWS = 4 };
#elif defined(__AVX__)
enum { LANES = 8, ROWS = 2 };
#else
enum { LANES = 4, ROWS = 4 };
#endif
enum { LINE = 64 / sizeof(float) }; /* numbers that memory hands over at once */
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

/* The lanes of four sums together. A function of its own: written into two places, a compiler may add in two orders. */
static __attribute__((noinline)) void across(const Lanes *in_flight, float *sums) {
    for (int i = 0; i < OUTS; i++) {
        sums[i] = 0;
        for (int lane = 0; lane < LANES; lane++) sums[i] += in_flight[i][lane];
    }
}

/* Four rows of weights and some of x -> sums (rows, 4). Whoever is the first to walk over these weights asks for the
   next four rows meanwhile: four walks at once are more than a processor foresees. */
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
        across(in_flight[m], sums + m * OUTS);
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

/* The same in whole numbers, where the order of a sum is of no matter: a compiler finds the machine's dot products of
   bytes, which have lanes of their own. */
static inline __attribute__((always_inline)) void whole_tile(const int8_t *const w[OUTS], const int8_t *restrict x,
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

static void whole_sums_of(const int8_t *weight, const long n[OUTS], const int8_t *x, long width, int32_t *sums,
                          int rows) {
    const int8_t *const w[OUTS] = {weight + n[0] * width, weight + n[1] * width, weight + n[2] * width,
                                   weight + n[3] * width};
    if (rows == ROWS) whole_tile(w, x, width, sums, ROWS);
    else for (int m = 0; m < rows; m++) whole_tile(w, x + m * width, width, sums + m * OUTS, 1);
}

/* Four whole sums of a row as what they stand for. A function of its own, as `across`: for sixteen at once a compiler
   may multiply in another order than for the four that are left, and a row would depend on those beside it. */
static __attribute__((noinline)) void scaled(const int32_t *whole, float of_row, const float *scale, const long n[OUTS],
                                             float *sums) {
    for (int i = 0; i < OUTS; i++) sums[i] = whole[i] * of_row * scale[n[i]];
}

static void product(const Matrix *matrix, const float *x, const Own *own, float *y, long rows, int activation) {
    const long outs = matrix->outs, width = matrix->width;
#pragma omp for schedule(dynamic, 16)
    for (long group = 0; group < (outs + OUTS - 1) / OUTS; group++) {
        long n[OUTS]; /* the last four may overlap with those before */
        for (int i = 0; i < OUTS; i++) {
            const long place = group * OUTS + OUTS > outs ? outs - OUTS + i : group * OUTS + i;
            n[i] = place < 0 ? 0 : place;
        }
        for (long begin = 0; begin < rows; begin += ROWS) {
            const int some = rows - begin < ROWS ? (int)(rows - begin) : ROWS;
            float sums[ROWS * OUTS];
            if (matrix->scale) {
                int32_t whole[ROWS * OUTS];
                whole_sums_of(matrix->weight, n, own->whole + begin * width, width, whole, some);
                for (int m = 0; m < some; m++)
                    scaled(whole + m * OUTS, own->scale[begin + m], matrix->scale, n, sums + m * OUTS);
            } else sums_of(matrix->weight, n, x + begin * width, width, sums, some, begin == 0);
            for (int j = 0; j < some * OUTS; j++)
                y[(begin + j / OUTS) * outs + n[j % OUTS]] =
                    bend(sums[j] + (matrix->bias ? matrix->bias[n[j % OUTS]] : 0), activation);
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

static void settle(const Norm *norm, float *head, const Rows *rows, long m, long width) {
    if (norm->weight) normalize(norm, head, head, width);
    if (rows->cosine) turn(head, rows->cosine + m * (width / 2), rows->sine + m * (width / 2), width / 2);
}

/* A weighted sum of values, as wide as registers can hold, so that it is written once and not for each of them. */
enum { WIDE = 8, AHEAD = 8 };

static inline __attribute__((always_inline)) void blend(const float *weights, const float *values, long length,
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

/* One head of one row looks at what its text has: keys and values of one head, so many and a stride apart. */
static void mix(const float *query, const float *keys, const float *values, long length, long stride, long width,
                float *y) {
    float weights[length + OUTS], largest = -3e38f, total = 0;
    const float root = 1 / sqrtf(width);
    for (long s = 0; s < length; s += OUTS) { /* the last four may be one key several times */
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
    for (; k + WIDE * LANES <= width; k += WIDE * LANES) blend(weights, values + k, length, stride, y + k, WIDE);
    for (; k + LANES <= width; k += LANES) blend(weights, values + k, length, stride, y + k, 1);
    for (; k < width; k++) {
        y[k] = 0;
        for (long s = 0; s < length; s++) y[k] += weights[s] * values[s * stride + k];
    }
}

/* All rows' keys and values are kept, then their queries look. A key head of a row, and the query heads that share it,
   are one thread's in both loops, so only rows of one text wait for each other. */
static void attend(const Model *model, const Layer *layer, const Cache *cache, const Shared *all, const Rows *rows,
                   long number) {
    const long width = model->d_head, n_shared = layer->n_kv_heads, stride = n_shared * width;
    const long jobs = rows->count * n_shared;
    float *const keys = cache->keys[number], *const values = cache->values[number];
#pragma omp for schedule(static) nowait
    for (long job = 0; job < jobs; job++) {
        const long m = job / n_shared, shared = job % n_shared, seat = rows->seats ? rows->seats[m] : m;
        float *key = all->joined + m * layer->joined.outs + (layer->n_heads + shared) * width, *value = key + stride;
        const long kept = (seat * cache->size + rows->lengths[m]) * stride + shared * width;
        settle(&layer->key_norm, key, rows, m, width);
        for (long k = 0; k < width; k++) keys[kept + k] = key[k], values[kept + k] = value[k];
    }
    if (rows->seats) {
#pragma omp barrier
    }
#pragma omp for schedule(static)
    for (long job = 0; job < jobs; job++) {
        const long m = job / n_shared, shared = job % n_shared, seat = rows->seats ? rows->seats[m] : m;
        const long begin = seat * cache->size * stride + shared * width;
        for (long head = layer->first[shared]; head < layer->first[shared + 1]; head++) {
            float *query = all->joined + m * layer->joined.outs + head * width;
            settle(&layer->query_norm, query, rows, m, width);
            mix(query, keys + begin, values + begin, rows->lengths[m] + 1, stride, width,
                all->mixed + (m * layer->n_heads + head) * width);
        }
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

static void block(const Model *model, const Cache *cache, const Own *own, const Shared *all, const Rows *given,
                  long number) {
    const Layer *layer = &model->layers[number];
    const long rows = given->count;
    enter(model, &layer->attention_norm, &layer->joined, own, rows);
    product(&layer->joined, own->read, own, all->joined, rows, NONE);
    attend(model, layer, cache, all, given, number);
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

/* x (B, C) -> logits (B, V), or only into the cache where there is no room for them. cosine and sine are (B, D/2) or
   NULL; owns has a room for each thread. */
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

/* x (rows, width) -> y (rows, outs): one product alone; own has room for whole numbers. */
void linear(const Matrix *matrix, const float *x, const Own *own, float *y, long rows, int threads) {
    round_rows(matrix, x, own, rows);
#pragma omp parallel num_threads(threads) if (rows * matrix->outs * matrix->width >= 1 << 19)
    product(matrix, x, own, y, rows, NONE);
}
