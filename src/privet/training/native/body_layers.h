/* Part of body.h: each example's own gradients of a layer. */

/* ---- each example's weight gradient of a convolution ---- */

static void N(convolution)(void *given, long example, int worker)
{
    const convolution_work *w = given;
    const float *inputs = w->inputs + example * w->channels * w->height * w->width;
    const float *gradient = w->gradient + example * w->outputs * w->rows * w->columns;
    long places = w->rows * w->columns, size = w->channels * w->window[0] * w->window[1];
    float *out = w->out ? w->out + example * w->outputs * size : NULL;
    float *turned = w->scratch + worker * w->scratch_each;
    float *picture = turned + places * w->padded_outputs;
    float *windows = picture + w->tall * w->wide * w->channels + MOST_READ;
    long *offsets = w->offsets;
    double squares = 0.0;
    float tile[OUTPUT_BLOCK * VECTORS * LANES];

    N(turn)(gradient, places, w->outputs, places, turned, w->padded_outputs);

    /* The padded picture, with the channels of a pixel side by side. */
    long line = w->wide * w->channels;
    if (w->padding[0] || w->padding[1])
        memset(picture, 0, (size_t)(w->tall * line) * sizeof(float));
    for (long y = 0; y < w->height; y++) {
        float *to = picture + (y + w->padding[0]) * line + w->padding[1] * w->channels;
        const float *from = inputs + y * w->width;
        if (w->channels == 1)
            memcpy(to, from, (size_t)w->width * sizeof(float));
        else
            N(turn)(from, w->height * w->width, w->channels, w->width, to, w->channels);
    }

    if (w->copied) {
        long run = w->window[1] * w->channels;
        for (long place = 0; place < places; place++) {
            float *to = windows + place * w->padded_run;
            const float *from = picture + offsets[place];
            /* Whole vectors, each of which overwrites what the one before has written beyond its end. */
            for (long i = 0; i < w->window[0]; i++)
                for (long j = 0; j < run; j += LANES)
                    *(vec *)(to + i * run + j) = *(const vec *)(from + i * line + j);
            for (long j = w->run; j < w->padded_run; j++)
                to[j] = 0.0f;
        }
    }

    for (long first = 0; first < w->outputs; first += OUTPUT_BLOCK) {
        long outputs = w->outputs - first < OUTPUT_BLOCK ? w->outputs - first : OUTPUT_BLOCK;
        for (long i = 0; i < w->runs; i++) {
            for (long start = 0; start < w->run;) {
                long rest = w->run - start;
                int count = (int)((rest + LANES - 1) / LANES);
                if (count > VECTORS)
                    count = count == VECTORS + 1 && VECTORS > 2 ? 2 : VECTORS;
                long wide = count * LANES, useful = rest < wide ? rest : wide;
                if (w->copied)
                    N(gathered)(count, turned + first, w->padded_outputs, windows + start, NULL, w->padded_run, places,
                                tile);
                else
                    N(gathered)(count, turned + first, w->padded_outputs, picture + i * line + start, offsets, 0,
                                places, tile);
                for (long o = 0; o < outputs; o++) {
                    const float *from = tile + o * wide;
                    squares += N(square)(from, useful);
                    if (out)
                        memcpy(out + (first + o) * size + i * w->run + start, from, (size_t)useful * sizeof(float));
                }
                start += wide;
            }
        }
    }
    w->squares[example] = (float)squares;
    w->squares[w->examples + example] = (float)(squares * w->units + w->least);
}

/* ---- each example's gradients of a layer norm's scale and shift ---- */

/* From column `at` on, for `count` vectors of columns: chains of CHAIN additions, whose sums are added. */
#define NORMALISED(count)                                                                                    \
    static void N(normalised_##count)(const normalised_work *w, long example, long at)                        \
    {                                                                                                        \
        const float *gradient = w->gradient.numbers + example * w->gradient.strides[0] + at;                  \
        const float *inputs = w->inputs.numbers + example * w->inputs.strides[0] + at;                        \
        const float *mean = w->mean + example * w->positions, *rstd = w->rstd + example * w->positions;       \
        vec scale[count], shift[count];                                                                      \
        memset(scale, 0, sizeof scale);                                                                      \
        memset(shift, 0, sizeof shift);                                                                      \
        for (long from = 0; from < w->positions; from += CHAIN) {                                            \
            long end = from + CHAIN < w->positions ? from + CHAIN : w->positions;                            \
            vec scales[count], shifts[count];                                                                \
            memset(scales, 0, sizeof scales);                                                                \
            memset(shifts, 0, sizeof shifts);                                                                \
            for (long t = from; t < end; t++)                                                                \
                for (int j = 0; j < count; j++) {                                                            \
                    vec g = *(const vec *)(gradient + t * w->gradient.strides[1] + j * LANES);                \
                    vec x = *(const vec *)(inputs + t * w->inputs.strides[1] + j * LANES);                    \
                    shifts[j] += g;                                                                          \
                    scales[j] += g * ((x - mean[t]) * rstd[t]);                                              \
                }                                                                                            \
            for (int j = 0; j < count; j++) {                                                                \
                scale[j] += scales[j];                                                                       \
                shift[j] += shifts[j];                                                                       \
            }                                                                                                \
        }                                                                                                    \
        memcpy(w->scale + example * w->gradient.size + at, scale, sizeof scale);                             \
        memcpy(w->shift + example * w->gradient.size + at, shift, sizeof shift);                             \
    }

NORMALISED(1)
NORMALISED(4)

static void N(normalised)(void *given, long example, int worker)
{
    const normalised_work *w = given;
    const float *gradient = w->gradient.numbers + example * w->gradient.strides[0];
    const float *inputs = w->inputs.numbers + example * w->inputs.strides[0];
    const float *mean = w->mean + example * w->positions, *rstd = w->rstd + example * w->positions;
    long at = 0, size = w->gradient.size;
    (void)worker;
    for (; at + 4 * LANES <= size; at += 4 * LANES)
        N(normalised_4)(w, example, at);
    for (; at + LANES <= size; at += LANES)
        N(normalised_1)(w, example, at);
    for (; at < size; at++) {
        double scale = 0.0, shift = 0.0;
        for (long t = 0; t < w->positions; t++) {
            float g = gradient[t * w->gradient.strides[1] + at];
            shift += g;
            scale += g * ((inputs[t * w->inputs.strides[1] + at] - mean[t]) * rstd[t]);
        }
        w->scale[example * size + at] = (float)scale;
        w->shift[example * size + at] = (float)shift;
    }
}
