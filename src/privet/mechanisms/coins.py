"""Coins of a stated probability, decided by whole numbers, and rounded so that ε is never more than was said.

A coin compares a uniform 64-bit word with a threshold T: it comes up with probability T/2^64, exactly. The odds of a
report are then a fraction of whole numbers, and each randomizer takes the threshold that is nearest to its formula
among those whose odds are at most a number *below* e^ε. So the true ε of what is drawn is the stated one or less by
about e^ε·2^-64, and estimators divide by the probabilities that were really used.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, checked
from privet.core.random import Rng

__all__ = [
    "LARGEST",
    "SMALLEST",
    "WORD",
    "Booleans",
    "Integers",
    "Words",
    "coins",
    "cost",
    "growth",
    "packed",
    "threshold",
    "usable",
]

Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]

WORD: Final = 1 << 64
SMALLEST: Final = 1e-4
LARGEST: Final = 40.0
_DIGITS: Final = 60
_CHUNK: Final = 1 << 15


def usable(epsilon: float) -> float:
    """Return ε if 64 bits are enough for it; raise `InvalidInput` otherwise."""
    value = checked.positive("epsilon", epsilon)
    if value < SMALLEST:
        raise InvalidInput("epsilon", f"is {value}, at which a report says nothing", f"use {SMALLEST} or more")
    if value > LARGEST:
        raise InvalidInput("epsilon", f"is {value}, which protects nobody", f"use {LARGEST:g} or less; 1 is usual")
    return value


def growth(epsilon: float | Fraction) -> Fraction:
    """Return a fraction just below e^ε: 60 digits, rounded down.

    >>> float(growth(1.0))
    2.718281828459045
    """
    exact = Fraction(epsilon)
    context = Context(prec=_DIGITS)
    # Rounded down twice: the exponent (a few digits at most, as an ε is a float), and its exponential.
    exponent = context.divide(Decimal(exact.numerator), Decimal(exact.denominator)).next_minus(context)
    return Fraction(exponent.exp(context).next_minus(context))


def threshold(odds: Fraction) -> int:
    """Return the largest T whose odds T to 2^64 - T are at most these.

    >>> threshold(Fraction(3)) == 3 * 2**62
    True
    """
    return int(WORD * odds / (1 + odds))


def coins(limit: int, count: int, rng: Rng) -> Booleans:
    """Return `count` coins, each true with probability limit/2^64."""
    return rng.words(count) < np.uint64(limit)


def packed(limit: int, shape: tuple[int, int], rng: Rng) -> Words:
    """Return words of 64 coins each, every one of them true with probability limit/2^64, exactly.

    Sixty-four uniform numbers are compared with the threshold at once, from their first bit on; a lane is decided where
    its bit differs from the threshold's, so that after about eight rounds hardly any is left.
    """
    result = np.zeros(shape[0] * shape[1], dtype=np.uint64)
    for start in range(0, result.size, _CHUNK):
        _decide(result[start : start + _CHUNK], limit, rng)
    return result.reshape(shape)


def _decide(out: Words, limit: int, rng: Rng) -> None:
    places: Integers | None = None
    decided = np.zeros_like(out)
    is_open = np.full_like(out, np.uint64(WORD - 1))
    for bit in range(63, -1, -1):
        if limit & ((1 << (bit + 1)) - 1) == 0:
            break  # the threshold has no more bits, and nothing that is still open lies below it
        drawn = rng.words(is_open.size)
        if limit >> bit & 1:
            decided |= is_open & ~drawn
            is_open &= drawn
        else:
            is_open &= ~drawn
        left = np.flatnonzero(is_open)
        if left.size < is_open.size // 2:
            if places is None:
                out[...] = decided
                places = left
            else:
                out[places] = decided
                places = places[left]
            decided, is_open = decided[left], is_open[left]
            if not left.size:
                return
    if places is None:
        out[...] = decided
    else:
        out[places] = decided


def cost(odds: Fraction) -> float:
    """Return the logarithm of odds that are 1 or more, rounded up: the ε of what has them.

    >>> cost(Fraction(81)) >= 4 * 1.0986122886681098
    True
    """
    context = Context(prec=_DIGITS)
    above = context.divide(Decimal(odds.numerator), Decimal(odds.denominator)).next_plus(context)
    exact = Fraction(above.ln(context).next_plus(context))
    epsilon = float(exact)
    return epsilon if Fraction(epsilon) >= exact else math.nextafter(epsilon, math.inf)
