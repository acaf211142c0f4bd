"""The examples run, and what they teach is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples import differencing, noise_and_accuracy, reconstruction
from privet.core.random import SeededRng

ROOT = Path(__file__).parents[1]


def test_exact_counts_tell_a_diagnosis() -> None:
    """Fails when the attack that the example is about does not work."""
    assert [differencing.exact_difference(differencing.clinic(ann)) for ann in (0, 1)] == [0, 1]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_noise_stops_the_difference(epsilon: float) -> None:
    """Fails when the attacker is right more often than ε allows, or the noise is much too large: 1,000 trials, five
    deviations of a binomial on either side (a false alarm in a million runs); the seed is fixed."""
    found = differencing.attack(epsilon, 1000, SeededRng(1))
    spread = 5 * (found.at_most * (1 - found.at_most) / 1000) ** 0.5
    assert found.right <= found.at_most + spread
    assert found.right >= max(found.at_most - spread - 0.12, 0.5 - spread)


def test_accurate_answers_give_the_table_away() -> None:
    """Fails when reconstruction does not work where it should: then the example would prove nothing."""
    assert reconstruction.exact(0.0, SeededRng(1)).share.value == 1.0
    assert reconstruction.exact(1.0, SeededRng(1)).share.value > 0.95


def test_a_budget_stops_reconstruction() -> None:
    """Fails when the table is found although ε = 1 was spent on all answers together: 100 coins find 75 or more with a
    chance of 3e-7; the seed is fixed."""
    kept = reconstruction.with_budget(1.0, SeededRng(1))
    assert kept.share.value < 0.75
    assert not kept.exceeds
    assert reconstruction.with_budget(20_000.0, SeededRng(1)).share.value > 0.95


def test_accuracy_follows_epsilon_and_people() -> None:
    """Fails when half of ε does not double the error, the prediction is off, or a larger table is not more exact. Means
    of 300 draws of Laplace noise are off by 6 % (one deviation); a quarter is allowed."""
    few = noise_and_accuracy.accuracy(200, 0.5, 300, SeededRng(1))
    less = noise_and_accuracy.accuracy(200, 0.25, 300, SeededRng(2))
    many = noise_and_accuracy.accuracy(2000, 0.5, 300, SeededRng(3))
    assert few.count_error == pytest.approx(few.predicted, rel=0.25)
    assert less.predicted == pytest.approx(2 * few.predicted, rel=0.05)
    assert less.count_error == pytest.approx(2 * few.count_error, rel=0.4)
    assert many.relative < few.relative / 5
    assert many.mean_error < few.mean_error / 5


@pytest.mark.parametrize("name", ["differencing", "reconstruction", "noise_and_accuracy"])
def test_the_example_runs(name: str) -> None:
    """Fails when the command on the first lines of an example does not work."""
    done = subprocess.run([sys.executable, "-m", f"examples.{name}"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ε" in done.stdout
