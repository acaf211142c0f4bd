"""Noise, ε and accuracy: predicted before any data is read, and measured.

Run: python -m examples.noise_and_accuracy

The noise on a count depends on ε alone, and not on the number of people. Half of ε doubles the error. With ten times as
many people, the relative error is a tenth. A mean divides the noise by the number of people.
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
    """Errors of a count and of a mean age, each released with all of ε."""

    people: int
    epsilon: float
    predicted: float
    """The mean absolute error of the count, computed from ε alone."""
    count_error: float
    """The same, measured."""
    mean_error: float
    """The mean absolute error of the mean age, measured, in years."""

    @property
    def relative(self) -> float:
        """The error of the count as a share of the answer."""
        return self.count_error / self.people


def accuracy(people: int, epsilon: float, trials: int, rng: Rng) -> Accuracy:
    """Measure the errors over many draws from the same table."""
    ages = [(37 * i) % 91 for i in range(people)]
    table = pl.DataFrame({"age": ages})
    count, mean = (plan(text, SCHEMA, epsilon=epsilon) for text in ("count", "mean(age)"))
    errors = []
    for query_plan, truth in ((count, people), (mean, float(np.mean(ages)))):
        totals = query_plan.tally(query_plan.open(table))
        errors.append(np.mean([abs(query_plan.draw(totals, rng=rng).value[0].value - truth) for _ in range(trials)]))
    return Accuracy(people, epsilon, count.methods[0].additive.expected_error, float(errors[0]), float(errors[1]))


def main() -> None:
    """Print the table."""
    table = Table("people", "ε", "error of a count", "predicted", "relative error", "error of a mean age")
    for people in (100, 1000, 10_000):
        for epsilon in (0.1, 0.5, 1.0):
            result = accuracy(people, epsilon, 300, default_rng())
            table.add_row(
                f"{people:,}",
                f"{epsilon:g}",
                f"{result.count_error:.2f}",
                f"{result.predicted:.2f}",
                f"{result.relative:.2%}",
                f"{result.mean_error:.3f} years",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
