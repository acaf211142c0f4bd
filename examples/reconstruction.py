"""Reconstruction attack: many accurate answers reveal a whole table (Dinur & Nissim 2003).

Run: python -m examples.reconstruction

Each of n people has a secret bit. An analyst asks many times how many people of a random subset have a 1, and finds
the bits that fit all answers best (`privet.attacks.reconstruct_bits`). Errors well below √n do not help: nearly every
bit is found. A budget helps: with a total ε for all answers together, each answer gets so small a part of ε that the
best fit is hardly better than a coin.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rich.console import Console

from privet.accounting import epsilon as guarantee_of
from privet.attacks import BitReconstruction, reconstruct_bits, recovered_bits
from privet.core.event import Repeated
from privet.core.random import Rng, default_rng
from privet.mechanisms import Count, DiscreteLaplaceMechanism

__all__ = ["exact", "main", "with_budget"]

PEOPLE, ANSWERS = 100, 400


def _questions(rng: Rng) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return secret bits, and the subset of people of each question."""
    return rng.below(2, PEOPLE), rng.below(2, (ANSWERS, PEOPLE))


def exact(error: float, rng: Rng) -> BitReconstruction:
    """Reconstruct from answers with a uniform error, as if they had been rounded: no budget, and no privacy."""
    secret, subsets = _questions(rng)
    answers = subsets @ secret + (2 * rng.uniform(ANSWERS) - 1) * error
    return recovered_bits(secret, reconstruct_bits(subsets, answers))


def with_budget(epsilon: float, rng: Rng) -> BitReconstruction:
    """Reconstruct from answers with noise for a total ε, and compare with the limit of the guarantee."""
    secret, subsets = _questions(rng)
    count = Count()
    noise = DiscreteLaplaceMechanism.for_epsilon(epsilon / ANSWERS, count)
    answers = [noise.release(count(secret[subset == 1]), rng=rng).value for subset in subsets]
    return recovered_bits(secret, reconstruct_bits(subsets, answers), guarantee_of(Repeated(noise.event, ANSWERS), 0.0))


def main() -> None:
    """Print the share of bits that is found."""
    console, rng = Console(), default_rng()
    console.print(f"{PEOPLE} people, {ANSWERS} counts over random halves of them")
    for error in (0.0, 1.0, 3.0):
        console.print(f"answers within {error:g}: {exact(error, rng).share.value:.0%} of the bits are found")
    for epsilon in (100.0, 10.0, 1.0):
        result = with_budget(epsilon, rng)
        shares = f"{result.share.value:.0%} are found; no attack finds more than {result.limit:.0%} on average"
        console.print(f"ε = {epsilon:g} for all answers: {shares}")


if __name__ == "__main__":
    main()
