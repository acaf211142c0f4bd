"""Randomness: the secure stream, the seeded one for tests, and exact samplers on top of either.

Names load on first use, so that importing the records does not pay for NumPy or a cipher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privet.core.lazy_attributes import lazy_attributes as _lazy_attributes
from privet.core.randomness import Randomness

if TYPE_CHECKING:
    from privet.core.random.bernoulli import BITS as BITS
    from privet.core.random.bernoulli import CEILING as CEILING
    from privet.core.random.bernoulli import Exponents as Exponents
    from privet.core.random.bernoulli import accept as accept
    from privet.core.random.discrete import discrete_gaussian, discrete_laplace
    from privet.core.random.faults import PATIENCE as PATIENCE
    from privet.core.random.faults import broken_source as broken_source
    from privet.core.random.keystream import KEY_BYTES as KEY_BYTES
    from privet.core.random.keystream import Bytes as Bytes
    from privet.core.random.keystream import Keystream as Keystream
    from privet.core.random.lineage import here as here
    from privet.core.random.rng import Rng
    from privet.core.random.secure import SecureRng, default_rng
    from privet.core.random.seeded import SeededRng
    from privet.core.random.tensors import view_of as view_of
    from privet.core.random.tensors import was_written as was_written

__all__ = [
    "Randomness",
    "Rng",
    "SecureRng",
    "SeededRng",
    "default_rng",
    "discrete_gaussian",
    "discrete_laplace",
]

__getattr__ = _lazy_attributes(
    __name__,
    {
        "bernoulli": ("BITS", "CEILING", "Exponents", "accept"),
        "discrete": ("discrete_gaussian", "discrete_laplace"),
        "faults": ("PATIENCE", "broken_source"),
        "keystream": ("KEY_BYTES", "Bytes", "Keystream"),
        "lineage": ("here",),
        "rng": ("Rng",),
        "secure": ("SecureRng", "default_rng"),
        "seeded": ("SeededRng",),
        "tensors": ("view_of", "was_written"),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
