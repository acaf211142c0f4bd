/* Part of body.h: normals from the stream of a key. */

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
