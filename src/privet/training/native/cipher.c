#include "cipher.h"

#include <string.h>

static int narrow_only;

void cipher_choose(int is_narrow)
{
    narrow_only = is_narrow;
}

void cipher_forget(cipher_key *key)
{
    volatile uint8_t *at = &key->rounds[0][0];
    for (unsigned i = 0; i < sizeof key->rounds; i++)
        at[i] = 0;
}

#if defined(__x86_64__)

#include <immintrin.h>

#define NARROW __attribute__((target("aes,sse4.1")))
#define WIDE __attribute__((target("aes,vaes,avx512f,avx512bw")))

int cipher_here(void)
{
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
}

static inline __m128i fold(__m128i key)
{
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    return _mm_xor_si128(key, _mm_slli_si128(key, 4));
}

/* FIPS 197, section 5.2, for keys of eight words: two round keys at a time. */
#define TWO_ROUNDS(constant)                                                                          \
    left = _mm_xor_si128(fold(left), _mm_shuffle_epi32(_mm_aeskeygenassist_si128(right, constant), 0xff)); \
    *to++ = left;                                                                                     \
    right = _mm_xor_si128(fold(right), _mm_shuffle_epi32(_mm_aeskeygenassist_si128(left, 0), 0xaa));  \
    *to++ = right;

NARROW void cipher_expand(const uint8_t key[32], cipher_key *given)
{
    __m128i rounds[CIPHER_ROUNDS + 1], *to = rounds;
    __m128i left = _mm_loadu_si128((const __m128i *)key), right = _mm_loadu_si128((const __m128i *)(key + 16));
    *to++ = left;
    *to++ = right;
    TWO_ROUNDS(1)
    TWO_ROUNDS(2)
    TWO_ROUNDS(4)
    TWO_ROUNDS(8)
    TWO_ROUNDS(16)
    TWO_ROUNDS(32)
    TWO_ROUNDS(64)
    memcpy(given->rounds, rounds, sizeof given->rounds);
}

/* The block's number, its last byte the lowest. */
NARROW static inline __m128i counted(uint64_t number)
{
    return _mm_set_epi64x((long long)__builtin_bswap64(number), 0);
}

#define AT_ONCE 8

NARROW static void narrow(const cipher_key *key, uint64_t first, long blocks, uint8_t *out)
{
    const __m128i *rounds = (const __m128i *)key->rounds;
    for (; blocks > 0; blocks -= AT_ONCE, first += AT_ONCE, out += AT_ONCE * CIPHER_BLOCK) {
        __m128i state[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            state[i] = _mm_xor_si128(counted(first + (uint64_t)i), rounds[0]);
        for (int round = 1; round < CIPHER_ROUNDS - 1; round++)
            for (int i = 0; i < AT_ONCE; i++)
                state[i] = _mm_aesenc_si128(state[i], rounds[round]);
        for (int i = 0; i < AT_ONCE; i++)
            state[i] = _mm_aesenclast_si128(state[i], rounds[CIPHER_ROUNDS - 1]);
        memcpy(out, state, (size_t)(blocks < AT_ONCE ? blocks : AT_ONCE) * CIPHER_BLOCK);
    }
}

/* The same, four blocks to a register. */
WIDE static void wide(const cipher_key *key, uint64_t first, long blocks, uint8_t *out)
{
    const __m512i swapped = _mm512_set_epi8(
        56, 57, 58, 59, 60, 61, 62, 63, 48, 49, 50, 51, 52, 53, 54, 55, 40, 41, 42, 43, 44, 45, 46, 47, 32, 33, 34, 35,
        36, 37, 38, 39, 24, 25, 26, 27, 28, 29, 30, 31, 16, 17, 18, 19, 20, 21, 22, 23, 8, 9, 10, 11, 12, 13, 14, 15, 0,
        1, 2, 3, 4, 5, 6, 7);
    const __m512i four = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
    __m512i rounds[CIPHER_ROUNDS], state[AT_ONCE];
    __m512i numbers = _mm512_set_epi64((long long)(first + 3), 0, (long long)(first + 2), 0, (long long)(first + 1), 0,
                                       (long long)first, 0);
    for (int round = 0; round < CIPHER_ROUNDS; round++)
        rounds[round] = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)key->rounds[round]));
    for (; blocks >= 4 * AT_ONCE; blocks -= 4 * AT_ONCE, first += 4 * AT_ONCE, out += 4 * AT_ONCE * CIPHER_BLOCK) {
        for (int i = 0; i < AT_ONCE; i++) {
            state[i] = _mm512_xor_si512(_mm512_shuffle_epi8(numbers, swapped), rounds[0]);
            numbers = _mm512_add_epi64(numbers, four);
        }
        for (int round = 1; round < CIPHER_ROUNDS - 1; round++)
            for (int i = 0; i < AT_ONCE; i++)
                state[i] = _mm512_aesenc_epi128(state[i], rounds[round]);
        for (int i = 0; i < AT_ONCE; i++)
            _mm512_storeu_si512(out + 64 * i, _mm512_aesenclast_epi128(state[i], rounds[CIPHER_ROUNDS - 1]));
    }
    narrow(key, first, blocks, out);
}

void cipher_stream(const cipher_key *key, uint64_t first, long blocks, uint8_t *out)
{
    int is_wide = __builtin_cpu_supports("vaes") && __builtin_cpu_supports("avx512f") &&
                  __builtin_cpu_supports("avx512bw");
    if (is_wide && !narrow_only)
        wide(key, first, blocks, out);
    else
        narrow(key, first, blocks, out);
}

#else

int cipher_here(void)
{
    return 0;
}

void cipher_expand(const uint8_t key[32], cipher_key *to)
{
    (void)key;
    (void)to;
}

void cipher_stream(const cipher_key *key, uint64_t first, long blocks, uint8_t *out)
{
    (void)key;
    (void)first;
    memset(out, 0, (size_t)blocks * CIPHER_BLOCK); /* nobody calls it: see cipher_here */
}

#endif
