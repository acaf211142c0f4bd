#include "kernels.h"

#include <string.h>

#define SUFFIX plain
#define TITLE "plain"
#define LANES 4
#define VECTORS 1
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define LOWER 0, 4, 1, 5
#define UPPER 2, 6, 3, 7
#include "body.h"

#if defined(__x86_64__)

#if defined(__clang__)
#define BEGIN(features) _Pragma(features)
#define END _Pragma("clang attribute pop")
#define AVX2 "clang attribute push(__attribute__((target(\"avx2,fma\"))), apply_to = function)"
#define AVX512 "clang attribute push(__attribute__((target(\"avx2,fma,avx512f,avx512dq\"))), apply_to = function)"
#else
#define BEGIN(features) _Pragma("GCC push_options") _Pragma(features)
#define END _Pragma("GCC pop_options")
#define AVX2 "GCC target(\"avx2,fma\")"
#define AVX512 "GCC target(\"avx2,fma,avx512f,avx512dq,prefer-vector-width=512\")"
#endif

BEGIN(AVX2)
#define SUFFIX avx2
#define TITLE "avx2"
#define LANES 8
#define VECTORS 1
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER 4, 12, 5, 13, 6, 14, 7, 15
#include "body.h"
END

BEGIN(AVX512)
#define SUFFIX avx512
#define TITLE "avx512"
#define LANES 16
#define VECTORS 3
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOWER 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define UPPER 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#include "body.h"
END

#endif

static const kernel_table *chosen;

/* The best first. */
static const kernel_table *best(const char *name)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && (!name || !strcmp(name, "avx512")))
        return &table_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && (!name || !strcmp(name, "avx2")))
        return &table_avx2;
#endif
    return !name || !strcmp(name, "plain") ? &table_plain : NULL;
}

const kernel_table *kernels_here(void)
{
    return chosen ? chosen : best(NULL);
}

int kernels_choose(const char *name)
{
    const kernel_table *found = best(name);
    if (found)
        chosen = found;
    return found != NULL;
}
