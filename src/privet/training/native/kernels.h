/* What the kernels take, and the table of those for one kind of processor. All memory is the caller's. */

#ifndef PRIVET_KERNELS_H
#define PRIVET_KERNELS_H

#include <stdint.h>

#include "cipher.h"

typedef struct {
    const float *inputs;   /* (examples, channels, height, width), contiguous */
    const float *gradient; /* (examples, outputs, rows, columns), contiguous */
    float *out;            /* (examples, outputs, window, channels), or NULL */
    float *squares;        /* (2, examples): the squared norms, and their slack: units · value + least */
    double units, least;
    float *scratch;        /* `convolution_scratch` numbers for each worker */
    long examples, channels, height, width, outputs, rows, columns;
    long window[2], stride[2], padding[2];
    /* Found from these by `convolution_prepare`: */
    long tall, wide;       /* the padded picture */
    long run, runs;        /* numbers of a window that lie together, and how many such runs it has */
    long padded_run, padded_outputs;
    int copied;            /* whether windows are copied out */
    long scratch_each;
    long *offsets;         /* (places): where the window of each begins in the padded picture */
} convolution_work;

typedef struct {
    const float *rows;
    const float *others; /* (examples): squared norms of other rows, to be multiplied with; or NULL */
    float *squares;      /* (2, examples): the squared norms, or products, and their slack */
    /* Slack: units · value, `least` for what vanished in the rows, `least_other` in the others, and in the product. */
    double units, least, least_other, least_product;
    long examples, size, stride, together;
} rows_work;

/* (examples, positions, size), where the last axis lies together in memory. */
typedef struct {
    const float *numbers;
    long size;
    long strides[2];
} factor;

#define MOST_RIGHTS 4

typedef struct {
    factor left, rights[MOST_RIGHTS];
    float *squares; /* (count, 2, examples): the sums, and their slack */
    double rooms[MOST_RIGHTS], least; /* slack: rooms · (Σ_t |left_t||right_t|)², and for what vanished */
    double unit;                      /* of rounding, in the sum that will be added */
    float *scratch;
    long examples, positions, count;
    long scratch_each;
} positions_work;

typedef struct {
    const int64_t *index; /* (examples, positions), contiguous */
    factor right;
    float *squares;       /* (2, examples): the squared norms, and their slack */
    double units, least;
    double unit;          /* of rounding, in the sum that will be added */
    double *scratch;
    long examples, positions;
    long scratch_each;
} lookup_work;

typedef struct {
    factor gradient, inputs;
    const float *mean, *rstd; /* (examples, positions), contiguous */
    float *scale, *shift;     /* (examples, size) */
    long positions;
} normalised_work;

typedef struct {
    const cipher_key *key;
    const uint8_t *words; /* in place of the key's stream; or NULL */
    long angles;          /* where the angles begin in it, in bytes */
    float *out;           /* (size): the cosines of all pairs, and then their sines */
    long size, pairs;
    float scale;          /* 2 · deviation² */
} noise_work;

typedef struct {
    const char *name;
    long lanes;
    void (*noise)(void *work, long piece, int worker);
    void (*rows)(void *work, long piece, int worker);
    void (*convolution)(void *work, long piece, int worker);
    void (*positions)(void *work, long piece, int worker);
    void (*lookup)(void *work, long piece, int worker);
    void (*normalised)(void *work, long piece, int worker);
} kernel_table;

#define NOISE_PIECE 1024 /* pairs */
#define ROWS_PIECE 32768 /* numbers */
#define OUTPUT_BLOCK 8
#define CHAIN 64 /* additions in a row */
#define MOST_LANES 16
#define MOST_READ 64 /* a vector may be read beyond what is used of it */

/* Those for this processor, or those that were chosen among what it can run. */
const kernel_table *kernels_here(void);
int kernels_choose(const char *name);

#endif
