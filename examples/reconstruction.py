"""Reconstruction: too many answers that are too accurate give the whole table away (Dinur & Nissim 2003).

Run: python -m examples.reconstruction

Everyone in a table of n people has a secret bit. An analyst asks for how many of a random subset it is 1, many times,
and then looks for the bits that fit all answers best (least squares). Errors well below √n do not help: nearly every
bit is found. What helps is a budget: with a total ε for all answers together, each of many answers gets so little of it
that the best fit is hardly better than a coin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.console import Console

from privet.core.random import Rng, default_rng
from privet.mechanisms import Count, DiscreteLaplace

__all__ = ["Found", "exact", "main", "reconstructed", "with_budget"]

PEOPLE, ANSWERS = 100, 400


@dataclass(frozen=True)
class Found:
    """How much of the table was found."""

    deviation: float
    """Of the noise on each answer."""
    share: float
    """Of the bits that were found; a coin finds half of them."""


def _asked(rng: Rng) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Secret bits, and which of the people each question is about."""
    return rng.below(2, PEOPLE), rng.below(2, (ANSWERS, PEOPLE))


def reconstructed(subsets: npt.NDArray[np.int64], answers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The bits that fit the answers best, by least squares and rounding."""
    fitted = np.linalg.lstsq(subsets.astype(np.float64), answers, rcond=None)[0]
    return (fitted > 0.5).astype(np.int64)


def exact(error: float, rng: Rng) -> Found:
    """Answers that are off by a uniform error, as if someone had rounded them: no budget, and no privacy."""
    secret, subsets = _asked(rng)
    answers = subsets @ secret + (2 * rng.uniform(ANSWERS) - 1) * error
    return Found(error / 3**0.5, float((reconstructed(subsets, answers) == secret).mean()))


def with_budget(epsilon: float, rng: Rng) -> Found:
    """Answers with the noise that ε for all of them together buys."""
    secret, subsets = _asked(rng)
    count = Count()
    noise = DiscreteLaplace.for_epsilon(epsilon / ANSWERS, count)
    answers = np.array([noise.release(count(secret[mine == 1]), rng=rng).value for mine in subsets], dtype=np.float64)
    return Found(noise.scale * 2**0.5, float((reconstructed(subsets, answers) == secret).mean()))


def main() -> None:
    """Print how much is found."""
    console, rng = Console(), default_rng()
    console.print(f"{PEOPLE} people, {ANSWERS} counts over random halves of them")
    for error in (0.0, 1.0, 3.0):
        console.print(f"answers within {error:g}: {exact(error, rng).share:.0%} of the bits are found")
    for epsilon in (100.0, 10.0, 1.0):
        found = with_budget(epsilon, rng)
        console.print(f"ε = {epsilon:g} for all (deviation {found.deviation:,.0f} each): {found.share:.0%} are found")


if __name__ == "__main__":
    main()
