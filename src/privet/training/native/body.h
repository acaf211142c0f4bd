/* The kernels, for vectors of LANES numbers; included once for each kind of processor, with its name as SUFFIX.

VECTORS is how many vectors times OUTPUT_BLOCK rows of a product its registers hold. */

#define GLUE_(a, b) a##_##b
#define GLUE(a, b) GLUE_(a, b)
#define N(name) GLUE(name, SUFFIX)

typedef float N(vec) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t N(ivec) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t N(uvec) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define vec N(vec)
#define ivec N(ivec)
#define uvec N(uvec)

/* ---- noise ---- */

static inline vec N(choose)(ivec mask, vec yes, vec no)
{
    return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask));
}

/* -ln(y) for 0 < y <= 1, where `lost` is what rounding took from y. After Cephes' logf: y = m 2^e, with m between
sqrt(1/2) and sqrt(2), and a polynomial in m - 1. */
static inline vec N(minus_log)(vec y, vec lost)
{
    ivec bits = (ivec)y;
    ivec exponent = ((bits - 0x3f3504f3) >> 23);
    vec e = __builtin_convertvector(exponent, vec);
    vec x = (vec)(bits - (exponent << 23)) - 1.0f;
    vec z = x * x;
    vec p = x * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * x + 1.1676998740e-1f;
    p = p * x - 1.2420140846e-1f;
    p = p * x + 1.4249322787e-1f;
    p = p * x - 1.6668057665e-1f;
    p = p * x + 2.0000714765e-1f;
    p = p * x - 2.4999993993e-1f;
    p = p * x + 3.3333331174e-1f;
    p = p * x * z + e * -2.12194440e-4f - z * 0.5f;
    return -((p + x) + e * 0.693359375f) - lost;
}

/* Two normals for each of LANES pairs of words: see privet.core.random.box_muller. */
static inline void N(pairs)(const uint32_t *radius, const int32_t *angle, float scale, float *cosines, float *sines)
{
    uvec first, second;
    ivec turn;
    float roots[LANES];
    memcpy(&first, radius, sizeof first);
    memcpy(&second, radius + LANES, sizeof second);
    memcpy(&turn, angle, sizeof turn);
    uvec low = __builtin_shufflevector(first, second, EVEN), high = __builtin_shufflevector(first, second, ODD);
    /* U is V or 1 - V, with V in (0, 1/2). */
    ivec over = (ivec)high >> 31;
    vec v = __builtin_convertvector(low ^ (uvec)over, vec) * 0x1p-64f + 0x1p-65f;
    v = __builtin_convertvector((ivec)high ^ over, vec) * 0x1p-32f + v;
    vec rest = 1.0f - v;
    vec lost = (vec)((ivec)((1.0f - rest) - v) & over);
    vec minus = N(minus_log)(N(choose)(over, rest, v), lost) * scale;
    memcpy(roots, &minus, sizeof minus);
    for (int i = 0; i < LANES; i++)
        roots[i] = __builtin_sqrtf(roots[i]);
    vec r;
    memcpy(&r, roots, sizeof r);
    /* A whole turn is 2^32: the quarter is exact, and the rest is at most an eighth of a turn. */
    ivec quarter = (ivec)((uvec)turn + 0x20000000u) >> 30;
    ivec left = (ivec)((uvec)turn - ((uvec)quarter << 30));
    vec x = (__builtin_convertvector(left, vec) + 0.5f) * 1.46291807927e-9f;
    vec z = x * x;
    vec sine = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
    vec cosine = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z;
    cosine = cosine - 0.5f * z + 1.0f;
    ivec odd = -(quarter & 1);
    vec c = (vec)((ivec)N(choose)(odd, sine, cosine) ^ (((quarter + 1) & 2) << 30)) * r;
    vec s = (vec)((ivec)N(choose)(odd, cosine, sine) ^ ((quarter & 2) << 30)) * r;
    memcpy(cosines, &c, sizeof c);
    memcpy(sines, &s, sizeof s);
}

/* NOISE_PIECE pairs. The stream has first the radii of all pairs, and from the next whole block on their angles. */
static void N(noise)(void *given, long piece, int worker)
{
    const noise_work *work = given;
    _Alignas(64) uint8_t stream[12 * NOISE_PIECE];
    long from = piece * NOISE_PIECE, count = work->pairs - from < NOISE_PIECE ? work->pairs - from : NOISE_PIECE;
    const uint32_t *radius = (const uint32_t *)stream;
    const int32_t *angle = (const int32_t *)(stream + 8 * NOISE_PIECE);
    float *cosines = work->out + from, *sines = work->out + work->pairs + from;
    long both = work->size - work->pairs - from, at = 0;
    (void)worker;
    if (work->words) {
        memset(stream, 0, sizeof stream);
        memcpy(stream, work->words + 8 * from, (size_t)(8 * count));
        memcpy(stream + 8 * NOISE_PIECE, work->words + work->angles + 4 * from, (size_t)(4 * count));
    } else {
        uint64_t blocks = 8 * NOISE_PIECE / CIPHER_BLOCK, angles = (uint64_t)(work->angles / CIPHER_BLOCK);
        cipher_stream(work->key, (uint64_t)piece * blocks, (long)blocks, stream);
        cipher_stream(work->key, angles + (uint64_t)piece * blocks / 2, (long)blocks / 2, stream + 8 * NOISE_PIECE);
    }
    for (; at + LANES <= count && at + LANES <= both; at += LANES)
        N(pairs)(radius + 2 * at, angle + at, work->scale, cosines + at, sines + at);
    for (; at < count; at += LANES) {
        float some[LANES], others[LANES];
        N(pairs)(radius + 2 * at, angle + at, work->scale, some, others);
        for (long i = 0; i < LANES && at + i < count; i++) {
            cosines[at + i] = some[i];
            if (at + i < both)
                sines[at + i] = others[i];
        }
    }
}

/* ---- products ---- */

#define GATHERED(count)                                                                                      \
    static void N(gathered_##count)(const float *coefficients, long step, const float *rows,                  \
                                    const long *offsets, long regular, long places, float *tile)              \
    {                                                                                                        \
        vec(*sums)[count] = (vec(*)[count])tile;                                                             \
        memset(tile, 0, OUTPUT_BLOCK * count * sizeof(vec));                                                 \
        for (long from = 0; from < places; from += CHAIN) {                                                  \
            long end = from + CHAIN < places ? from + CHAIN : places;                                        \
            vec total[OUTPUT_BLOCK][count];                                                                  \
            memset(total, 0, sizeof total);                                                                  \
            for (long at = from; at < end; at++) {                                                           \
                const float *row = rows + (offsets ? offsets[at] : at * regular);                            \
                const float *weight = coefficients + at * step;                                              \
                vec here[count];                                                                             \
                for (int j = 0; j < count; j++)                                                              \
                    here[j] = *(const vec *)(row + j * LANES);                                               \
                for (int i = 0; i < OUTPUT_BLOCK; i++)                                                       \
                    for (int j = 0; j < count; j++)                                                          \
                        total[i][j] += weight[i] * here[j];                                                  \
            }                                                                                                \
            for (int i = 0; i < OUTPUT_BLOCK; i++)                                                           \
                for (int j = 0; j < count; j++)                                                              \
                    sums[i][j] += total[i][j];                                                               \
        }                                                                                                    \
    }

GATHERED(1)
#if VECTORS > 1
GATHERED(2)
#endif
#if VECTORS > 2
GATHERED(3)
#endif

/* Chains of CHAIN additions, whose sums are added: rounding grows with CHAIN and places / CHAIN, not with places.

tile[i][·] = Σ_places coefficients[place][i] · rows[place][·], for OUTPUT_BLOCK rows and up to VECTORS vectors. */
static inline void N(gathered)(int count, const float *coefficients, long step, const float *rows,
                               const long *offsets, long regular, long places, float *tile)
{
#if VECTORS > 2
    if (count == 3) {
        N(gathered_3)(coefficients, step, rows, offsets, regular, places, tile);
        return;
    }
#endif
#if VECTORS > 1
    if (count == 2) {
        N(gathered_2)(coefficients, step, rows, offsets, regular, places, tile);
        return;
    }
#endif
    (void)count;
    N(gathered_1)(coefficients, step, rows, offsets, regular, places, tile);
}

/* target[column][row] = source[row][column]; what is beyond `rows` becomes 0. */
static void N(turn)(const float *source, long step, long rows, long columns, float *target, long width)
{
    long row = 0;
    for (; row + LANES <= rows; row += LANES) {
        long column = 0;
        for (; column + LANES <= columns; column += LANES) {
            vec now[LANES], next[LANES];
            for (int i = 0; i < LANES; i++)
                now[i] = *(const vec *)(source + (row + i) * step + column);
            for (int round = 1; round < LANES; round *= 2) {
                for (int i = 0; i < LANES / 2; i++) {
                    next[2 * i] = __builtin_shufflevector(now[i], now[i + LANES / 2], LOWER);
                    next[2 * i + 1] = __builtin_shufflevector(now[i], now[i + LANES / 2], UPPER);
                }
                for (int i = 0; i < LANES; i++)
                    now[i] = next[i];
            }
            for (int i = 0; i < LANES; i++)
                *(vec *)(target + (column + i) * width + row) = now[i];
        }
        for (; column < columns; column++)
            for (int i = 0; i < LANES; i++)
                target[column * width + row + i] = source[(row + i) * step + column];
    }
    for (long column = 0; column < columns && row < width; column++) {
        for (long rest = row; rest < rows; rest++)
            target[column * width + rest] = source[rest * step + column];
        for (long rest = row < rows ? rows : row; rest < width; rest++)
            target[column * width + rest] = 0.0f;
    }
}

/* ---- squared norms of rows ---- */

/* Σ x², added up in float64 from lanes that hold at most 64 squares each. */
static inline double N(square)(const float *row, long size)
{
    double total = 0.0;
    long at = 0;
    while (at + LANES <= size) {
        long end = at + 64 * LANES;
        vec sum = {0.0f};
        float each[LANES];
        for (; at + LANES <= size && at < end; at += LANES) {
            vec here = *(const vec *)(row + at);
            sum += here * here;
        }
        memcpy(each, &sum, sizeof each);
        for (int i = 0; i < LANES; i++)
            total += each[i];
    }
    for (; at < size; at++)
        total += (double)row[at] * row[at];
    return total;
}

static void N(rows)(void *given, long piece, int worker)
{
    const rows_work *w = given;
    long end = (piece + 1) * w->together < w->examples ? (piece + 1) * w->together : w->examples;
    (void)worker;
    for (long i = piece * w->together; i < end; i++) {
        double square = N(square)(w->rows + i * w->stride, w->size);
        double other = w->others ? w->others[i] : 1.0;
        double slack = square * other * w->units + other * w->least + square * w->least_other;
        w->squares[i] = (float)(square * other);
        w->squares[w->examples + i] = (float)(slack + w->least_product);
    }
}

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

/* ---- norms of sums of products ---- */

/* Adds what a tile of products of positions says: what lies above the diagonal counts twice. */
static inline void N(weigh)(const float *lefts, const float *rights, long t, long s, long wide, double *answer)
{
    for (long i = 0; i < OUTPUT_BLOCK; i++) {
        const float *l = lefts + i * wide, *r = rights + i * wide;
        long diagonal = t + i - s;
        for (long from = 0; from < wide; from += LANES) {
            vec product = *(const vec *)(l + from) * *(const vec *)(r + from);
            float each[LANES], sum = 0.0f;
            memcpy(each, &product, sizeof each);
            if (from <= diagonal) /* the rest of the vector is the mirror image of what another tile counts */
                for (long j = 0; j < LANES && from + j <= diagonal; j++) {
                    if (from + j == diagonal) {
                        answer[0] += each[j];
                        answer[1] += __builtin_sqrt((double)l[diagonal] * r[diagonal]);
                        answer[2] += l[diagonal];
                        answer[3] += r[diagonal];
                    }
                    each[j] = 0.0f;
                }
            for (int j = 0; j < LANES; j++)
                sum += each[j];
            answer[0] += 2.0 * sum;
        }
    }
}

static void N(positions)(void *given, long example, int worker)
{
    const positions_work *w = given;
    long width = (w->positions + MOST_LANES - 1) / MOST_LANES * MOST_LANES;
    float *left = w->scratch + worker * w->scratch_each, *rights[MOST_RIGHTS];
    float lefts[OUTPUT_BLOCK * VECTORS * LANES], products[OUTPUT_BLOCK * VECTORS * LANES];
    double found[MOST_RIGHTS][4];

    N(turn)(w->left.numbers + example * w->left.strides[0], w->left.strides[1], w->positions, w->left.size, left,
            width);
    rights[0] = left + w->left.size * width;
    for (long k = 0; k < w->count; k++) {
        const factor *right = w->rights + k;
        N(turn)(right->numbers + example * right->strides[0], right->strides[1], w->positions, right->size, rights[k],
                width);
        if (k + 1 < w->count)
            rights[k + 1] = rights[k] + right->size * width;
    }
    memset(found, 0, sizeof found);
    for (long t = 0; t < w->positions; t += OUTPUT_BLOCK) {
        for (long s = t / LANES * LANES; s < w->positions;) {
            int count = (int)((w->positions - s + LANES - 1) / LANES);
            if (count > VECTORS)
                count = count == VECTORS + 1 && VECTORS > 2 ? 2 : VECTORS;
            N(gathered)(count, left + t, width, left + s, NULL, width, w->left.size, lefts);
            for (long k = 0; k < w->count; k++) {
                N(gathered)(count, rights[k] + t, width, rights[k] + s, NULL, width, w->rights[k].size, products);
                N(weigh)(lefts, products, t, s, count * LANES, found[k]);
            }
            s += count * LANES;
        }
    }
    for (long k = 0; k < w->count; k++) {
        double traces = (double)w->left.size * found[k][3] + (double)w->rights[k].size * found[k][2];
        float *squares = w->squares + 2 * w->examples * k;
        squares[example] = (float)found[k][0];
        squares[w->examples + example] =
            (float)(found[k][1] * found[k][1] * w->rooms[k] + ((double)w->positions * traces + 1.0) * w->least);
    }
}

static const kernel_table N(table) = {
    TITLE, LANES, N(noise), N(rows), N(convolution), N(positions),
};

#undef vec
#undef ivec
#undef uvec
#undef N
#undef GLUE
#undef GLUE_
#undef GATHERED
#undef SUFFIX
#undef TITLE
#undef LANES
#undef VECTORS
#undef EVEN
#undef ODD
#undef LOWER
#undef UPPER
