"""A few loops in C, where torch has no operation for what a private step does, or needs many.

They are compiled when the package is installed, if there is a C compiler, and replace code in Python that stays beside
them: it is used where they are missing, for other types than float32 on the processor, and if the environment says
`PRIVET_NATIVE=0`. Both are held to the same tests.
"""

from privet.training.native.loops import (
    additions,
    bytes_for,
    convolution_gradients,
    first_angle,
    has_cipher,
    lookup_squares,
    normalised_gradients,
    normals,
    processor,
    product_squares,
    row_squares,
    squares_of_products,
    takes_products,
    takes_rows,
    usable,
)

__all__ = [
    "additions",
    "bytes_for",
    "convolution_gradients",
    "first_angle",
    "has_cipher",
    "lookup_squares",
    "normalised_gradients",
    "normals",
    "processor",
    "product_squares",
    "row_squares",
    "squares_of_products",
    "takes_products",
    "takes_rows",
    "usable",
]
