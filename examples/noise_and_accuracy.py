"""How noise, ε and accuracy relate: known before any data is read, and measured.

Run: python -m examples.noise_and_accuracy

The noise on a count depends on ε alone, and not on how many people there are: halve ε and the error doubles; have ten
times as many people and the same error is a tenth of the answer. A mean divides that noise by the number of people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from privet.core.random import Rng, default_rng
from privet.data import Number, Schema
from privet.query import plan

__all__ = ["Accuracy", "accuracy", "main"]

SCHEMA = Schema((Number("age", 0, 100, source="domain limit"),))


@dataclass(frozen=True)
class Accuracy:
    """Of a count and of a mean age, each alone with all of ε."""

    people: int
    epsilon: float
    predicted: float
    """The mean absolute error of the count, from ε alone."""
    count_error: float
    """The same, measured."""
    mean_error: float
    """The mean absolute error of the mean age, measured, in years."""

    @property
    def relative(self) -> float:
        """The error of the count as a share of the answer."""
        return self.count_error / self.people


def accuracy(people: int, epsilon: float, trials: int, rng: Rng) -> Accuracy:
    """Ask the same table again and again, and compare with the truth."""
    ages = [(37 * i) % 91 for i in range(people)]
    table = pl.DataFrame({"age": ages})
    count, mean = (plan(text, SCHEMA, epsilon=epsilon) for text in ("count", "mean(age)"))
    errors = []
    for made, truth in ((count, people), (mean, float(np.mean(ages)))):
        totals = made.tally(made.open(table))
        errors.append(np.mean([abs(made.draw(totals, rng=rng).value[0].value - truth) for _ in range(trials)]))
    return Accuracy(people, epsilon, count.methods[0].additive.expected_error, float(errors[0]), float(errors[1]))


def main() -> None:
    """Print the table."""
    shown = Table("people", "ε", "error of a count", "predicted", "of the answer", "error of a mean age")
    for people in (100, 1000, 10_000):
        for epsilon in (0.1, 0.5, 1.0):
            found = accuracy(people, epsilon, 300, default_rng())
            shown.add_row(
                f"{people:,}",
                f"{epsilon:g}",
                f"{found.count_error:.2f}",
                f"{found.predicted:.2f}",
                f"{found.relative:.2%}",
                f"{found.mean_error:.3f} years",
            )
    Console().print(shown)


if __name__ == "__main__":
    main()
