"""Differencing attack: two harmless counts reveal one person's diagnosis, and noise prevents it.

Run: python -m examples.differencing

A clinic answers `count where diabetes = 1`, before and after Ann leaves. Neither number is about Ann, but their
difference is her diagnosis. If the count that includes her is released with ε-DP, the best guess is right with a
probability of at most e^ε/(1 + e^ε), even for an attacker who knows everyone else's diagnosis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl
from rich.console import Console

from privet.core.random import Rng, default_rng
from privet.data import Category, Identifier, Schema
from privet.query import plan

__all__ = ["Attack", "attack", "clinic", "exact_difference", "main", "most_right"]

SCHEMA = Schema((Identifier("name"), Category("diabetes", ("0", "1"), source="codebook")))
QUESTION = "count where diabetes = 1"


@dataclass(frozen=True)
class Attack:
    """How often the attacker guessed Ann's diagnosis correctly, and the limit for any attack."""

    epsilon: float
    right: float
    at_most: float


def clinic(ann: int, others: int = 200) -> pl.DataFrame:
    """Return a table in which Ann's diagnosis is the last cell."""
    names = [f"patient {i}" for i in range(others)] + ["Ann"]
    return pl.DataFrame({"name": names, "diabetes": [i % 4 // 3 for i in range(others)] + [ann]})


def exact_difference(table: pl.DataFrame) -> int:
    """Return the difference of two exact counts, which is Ann's diagnosis."""
    sick = pl.col("diabetes") == 1
    return len(table.filter(sick)) - len(table.head(-1).filter(sick))


def most_right(epsilon: float) -> float:
    """Return the largest share of right guesses that ε-DP allows, for a secret that is 0 or 1 with equal odds."""
    return 1 / (1 + math.exp(-epsilon))


def attack(epsilon: float, trials: int, rng: Rng) -> Attack:
    """Attack noisy counts: a fair coin decides whether Ann is ill, and the attacker knows everyone else's diagnosis."""
    query_plan = plan(QUESTION, SCHEMA, epsilon=epsilon)
    tables = [clinic(ann) for ann in (0, 1)]
    totals = [query_plan.tally(query_plan.open(table)) for table in tables]
    without_ann = len(tables[0].head(-1).filter(pl.col("diabetes") == 1))
    right = 0
    for ann in rng.below(2, trials).tolist():
        noisy = query_plan.draw(totals[ann], rng=rng).value[0].value
        right += (noisy - without_ann > 0.5) == (ann == 1)
    return Attack(epsilon, right / trials, most_right(epsilon))


def main() -> None:
    """Print both attacks."""
    console = Console()
    difference = exact_difference(clinic(1))
    console.print(f"Exact counts: the difference is {difference}, so Ann certainly has diabetes.")
    for epsilon in (4.0, 1.0, 0.5, 0.1):
        result = attack(epsilon, 2000, default_rng())
        console.print(f"ε = {epsilon:g}: right in {result.right:.1%} of all cases (± 2 %)", end="; ")
        console.print(f"no attack can exceed {result.at_most:.1%}")


if __name__ == "__main__":
    main()
