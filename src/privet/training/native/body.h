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

#include "body_noise.h"
#include "body_norms.h"
#include "body_layers.h"

static const kernel_table N(table) = {
    TITLE, LANES, N(noise), N(rows), N(convolution), N(positions), N(lookup), N(normalised),
};

#undef vec
#undef ivec
#undef uvec
#undef N
#undef GLUE
#undef GLUE_
#undef GATHERED
#undef NORMALISED
#undef SUFFIX
#undef TITLE
#undef LANES
#undef VECTORS
#undef EVEN
#undef ODD
#undef LOWER
#undef UPPER
