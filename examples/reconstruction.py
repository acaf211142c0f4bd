"""Reconstruction: too many answers that are too accurate give the whole table away (Dinur & Nissim 2003).

Run: python -m examples.reconstruction

Everyone in a table of n people has a secret bit. An analyst asks for how many of a random subset it is 1, many times,
and then looks for the bits that fit all answers best (`privet.attacks.rebuild`). Errors well below √n do not help:
nearly every bit is found. What helps is a budget: with a total ε for all answers together, each of many answers gets so
little of it that the best fit is hardly better than a coin.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rich.console import Console

from privet.accounting import epsilon as priced
from privet.attacks import BitReconstruction, reconstruct_bits, recovered_bits
from privet.core.event import Repeated
from privet.core.random import Rng, default_rng
from privet.mechanisms import Count, DiscreteLaplaceMechanism

__all__ = ["exact", "main", "with_budget"]

PEOPLE, ANSWERS = 100, 400


def _asked(rng: Rng) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Secret bits, and which of the people each question is about."""
    return rng.below(2, PEOPLE), rng.below(2, (ANSWERS, PEOPLE))


def exact(error: float, rng: Rng) -> BitReconstruction:
    """Answers that are off by a uniform error, as if someone had rounded them: no budget, and no privacy."""
    secret, subsets = _asked(rng)
    answers = subsets @ secret + (2 * rng.uniform(ANSWERS) - 1) * error
    return recovered_bits(secret, reconstruct_bits(subsets, answers))


def with_budget(epsilon: float, rng: Rng) -> BitReconstruction:
    """Answers with the noise that ε for all of them together buys, and what that leaves to be found."""
    secret, subsets = _asked(rng)
    count = Count()
    noise = DiscreteLaplaceMechanism.for_epsilon(epsilon / ANSWERS, count)
    answers = [noise.release(count(secret[mine == 1]), rng=rng).value for mine in subsets]
    return recovered_bits(secret, reconstruct_bits(subsets, answers), priced(Repeated(noise.event, ANSWERS), 0.0))


def main() -> None:
    """Print how much is found."""
    console, rng = Console(), default_rng()
    console.print(f"{PEOPLE} people, {ANSWERS} counts over random halves of them")
    for error in (0.0, 1.0, 3.0):
        console.print(f"answers within {error:g}: {exact(error, rng).share.value:.0%} of the bits are found")
    for epsilon in (100.0, 10.0, 1.0):
        found = with_budget(epsilon, rng)
        told = f"{found.share.value:.0%} are found, and {found.limit:.0%} at most by anybody, on average"
        console.print(f"ε = {epsilon:g} for all answers: {told}")


if __name__ == "__main__":
    main()
