"""Which kind of generator made a piece of noise. Needs neither NumPy nor a cipher, so records may import it."""

from __future__ import annotations

from privet.core.randomness import Randomness

__all__ = ["Randomness"]
