/* Part of body.h: products of small matrices, and squared norms. */

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

/* The slack of a squared norm, where what is added may be `apart` longer than what was measured. */
static inline double N(lengthened)(double square, double slack, double apart)
{
    double most = square > 0.0 ? square + slack : slack;
    return slack + apart * (2.0 * __builtin_sqrt(most) + apart);
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
        double slack = found[k][1] * found[k][1] * w->rooms[k] + ((double)w->positions * traces + 1.0) * w->least;
        float *squares = w->squares + 2 * w->examples * k;
        squares[example] = (float)found[k][0];
        squares[w->examples + example] =
            (float)N(lengthened)(found[k][0], slack, (double)(w->positions + 2) * w->unit * found[k][1]);
    }
}

/* ---- norms of sums of looked-up rows ---- */

/* Rows that go to the same place are added up in float64 before they are squared. The library will add them one by one in
float32: of m rows with the lengths L in all, its sum may be longer by (m + 2) units of rounding of L. */
static void N(lookup)(void *given, long example, int worker)
{
    const lookup_work *w = given;
    const int64_t *index = w->index + example * w->positions;
    const float *rows = w->right.numbers + example * w->right.strides[0];
    long step = w->right.strides[1], size = w->right.size;
    double *sum = w->scratch + worker * w->scratch_each, squares = 0.0, apart = 0.0;
    uint8_t *done = (uint8_t *)(sum + size);

    memset(done, 0, (size_t)w->positions);
    for (long t = 0; t < w->positions; t++) {
        int64_t place = index[t];
        long others = 0;
        if (done[t])
            continue;
        for (long s = t + 1; s < w->positions; s++)
            others += index[s] == place;
        double own = N(square)(rows + t * step, size), lengths = __builtin_sqrt(own);
        if (others) {
            for (long j = 0; j < size; j++)
                sum[j] = rows[t * step + j];
            for (long s = t + 1, left = others; left; s++)
                if (index[s] == place) {
                    const float *row = rows + s * step;
                    for (long j = 0; j < size; j++)
                        sum[j] += row[j];
                    lengths += __builtin_sqrt(N(square)(row, size));
                    done[s] = 1;
                    left--;
                }
            own = 0.0;
            for (long j = 0; j < size; j++)
                own += sum[j] * sum[j];
            lengths *= (double)(others + 3) * w->unit;
            apart += lengths * lengths;
        }
        squares += own;
    }
    w->squares[example] = (float)squares;
    w->squares[w->examples + example] =
        (float)N(lengthened)(squares, squares * w->units + w->least, __builtin_sqrt(apart));
}
