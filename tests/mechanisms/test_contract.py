"""What every mechanism owes: an event before data, a price that is kept, a release that says what was done."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from privet import accounting
from privet.core import Randomness, Release, Unit
from privet.core.bounded import Bounded
from privet.core.errors import InvalidInput
from privet.core.event import Event
from privet.core.random import SeededRng
from privet.core.unit import Trust
from privet.mechanisms import MECHANISMS
from tests.mechanisms.examples import CASES, DELTA, EPSILON, EXAMPLES
from tools.syllabus import SOURCE, Kind, load

every = pytest.mark.parametrize(
    ("name", "unit"), CASES, ids=lambda value: str(value) if isinstance(value, str) else f"{value}".replace(" ", "-")
)


@cache
def made(name: str, unit: Unit) -> tuple[Any, Any, Bounded[Any]]:
    """The mechanism, its clipper and a query; made once, as calibrating takes a while."""
    example = EXAMPLES[name]
    clip = example.clip(unit)
    return example.make(clip), clip, example.query(clip)


def test_every_mechanism_has_an_example() -> None:
    """A mechanism without an example here would go untested."""
    assert set(EXAMPLES) == set(MECHANISMS)


def test_every_mechanism_is_in_the_syllabus() -> None:
    """A mechanism that no row shows would not be found."""
    shown = {
        word
        for row in load(SOURCE.read_text(encoding="utf-8"))
        if row.kind is Kind.MECHANISM
        for word in row.name.split()
    }
    assert set(MECHANISMS) <= shown


@every
def test_the_event_is_known_before_the_data(name: str, unit: Unit) -> None:
    """Catches an event that depends on the answer, or that is not what the release says was done."""
    mechanism, _, query = made(name, unit)
    before = mechanism.event
    release = mechanism.release(query, rng=SeededRng(1), source="clinic")
    assert release.event == before == mechanism.event
    assert Event.from_json(before.to_json()) == before
    assert isinstance(release, Release)
    assert (release.unit, release.source, release.randomness) == (unit, ("clinic",), Randomness.SEEDED)


@every
def test_the_price_is_the_one_asked_for(name: str, unit: Unit) -> None:
    """Catches a factor of 2 for replaced rows, a group counted once, an ε that is shared out wrongly: for the unit of
    the clipper the accountant may not say more than ε, nor much less (except where a block's halves are known to be
    worth more than their sum, and a choice for two keys).
    """
    mechanism, _, _ = made(name, unit)
    paid = accounting.epsilon(mechanism.event, EXAMPLES[name].delta, unit=unit).epsilon.upper
    assert paid <= EPSILON
    # (ε, δ) blocks of replaced users and of groups lose something in group privacy
    assert paid >= (0.9 if EXAMPLES[name].delta == 0 or name in ("Gaussian", "Peeling") else 0.4) * EPSILON


@every
def test_utility_is_stated(name: str, unit: Unit) -> None:
    """Catches a width that falls with the confidence, and one that is not a number."""
    mechanism, _, _ = made(name, unit)
    assert mechanism.expected_error >= 0
    widths = [mechanism.interval(confidence) for confidence in (0.5, 0.9, 0.99, 0.999999)]
    assert widths == sorted(widths)
    assert 0 <= widths[0] < widths[-1] < float("inf")
    for bad in (1.0, -0.1, float("nan")):
        with pytest.raises(InvalidInput, match="confidence"):
            mechanism.interval(bad)


@every
def test_a_query_that_moves_further_is_refused(name: str, unit: Unit) -> None:
    """Catches a mechanism that takes an answer which one unit can move further than its noise was made for."""
    mechanism, _, query = made(name, unit)
    far = Bounded(query.value, unit, l0=query.l0, l1=2 * (query.l1 or 0), linf=2 * (query.linf or 0))
    with pytest.raises(InvalidInput, match="the mechanism was made for"):
        mechanism.release(far, rng=SeededRng(1))
    other = Bounded(query.value, replace(unit, trust=Trust.DISTRIBUTED), l0=query.l0, l1=query.l1, linf=query.linf)
    with pytest.raises(InvalidInput, match="is bounded for"):
        mechanism.release(other, rng=SeededRng(1))
    with pytest.raises(InvalidInput, match="clip it first"):
        mechanism.release(query.value, rng=SeededRng(1))


@every
def test_a_query_that_moves_otherwise_is_refused(name: str, unit: Unit) -> None:
    """Catches a mechanism that was made for whole numbers and takes fractions, or for answers that only rise and takes
    others, though no distance differs.
    """
    mechanism, _, query = made(name, unit)
    norms = {"l0": query.l0, "l1": query.l1, "l2": query.l2, "linf": query.linf}
    for whole, monotone in ((False, query.monotone), (query.whole, False)):
        other = Bounded(query.value, unit, **norms, whole=whole, monotone=monotone)
        if (whole, monotone) == (query.whole, query.monotone):
            mechanism.release(other, rng=SeededRng(1))
        else:
            with pytest.raises(InvalidInput, match="may hold fractions" if not whole else "may fall"):
                mechanism.release(other, rng=SeededRng(1))


@every
def test_no_row_changes_the_shape(name: str, unit: Unit) -> None:
    """Catches an error, a type or a shape that depends on a row: no rows, one, missing, infinite and malformed ones.

    What keys come out does depend on the rows: they are what is released.
    """
    mechanism, clip, _ = made(name, unit)
    example = EXAMPLES[name]
    seen = set()
    for rows in (
        example.rows,
        [],
        example.rows[:1],
        [None] * 4,
        [float("nan")] * 3,
        [object()],
        [[1, 2], 3],
        [1e308, -1e308],
    ):
        usable = rows if name != "Peeling" or not rows or rows is example.rows else [[0.0] * 4, rows[0]]
        value = mechanism.release(example.query(clip, usable), rng=SeededRng(7)).value
        seen.add((type(value), getattr(value, "shape", None), getattr(value, "dtype", None)))
    assert len(seen) == 1


@every
def test_a_mechanism_is_public_and_a_query_is_not(name: str, unit: Unit) -> None:
    """Catches a mechanism that keeps something private, and a query that prints or pickles."""
    mechanism, _, query = made(name, unit)
    assert pickle.loads(pickle.dumps(mechanism)).event == mechanism.event
    with pytest.raises(TypeError):
        pickle.dumps(query)
    with pytest.raises(TypeError):
        copy.deepcopy(query)
    assert "private" in repr(query)


def test_two_of_one_mechanism_are_equal_and_hashable() -> None:
    """Catches a field that breaks equality, by which a ledger knows a question again."""
    for name, example in EXAMPLES.items():
        unit = example.units[0]
        mechanism = made(name, unit)[0]
        assert example.make(example.clip(unit)) == mechanism
        assert hash(mechanism) is not None


def test_post_processing_and_joining_are_free_or_composed() -> None:
    """Catches a map that is charged, and a join that counts one draw twice or two draws once."""
    mechanism, clip, query = made("DiscreteLaplace", Unit())
    first = mechanism.release(query, rng=SeededRng(1))
    second = mechanism.release(EXAMPLES["DiscreteLaplace"].query(clip), rng=SeededRng(2))
    assert first.map(lambda counts: counts.clip(0)).event == first.event
    twice = Release.join(first, Release.join(second, first.map(sum)))
    assert len(twice.draws) == 2
    assert accounting.epsilon(twice.event, 0.0).epsilon.upper == pytest.approx(2 * EPSILON)


def test_calibration_asks_for_something() -> None:
    """Catches targets that cannot be met and are taken all the same."""
    for name in ("Laplace", "DiscreteLaplace", "Exponential", "Partitions"):
        example = EXAMPLES[name]
        clip = example.clip(Unit())
        arguments = (DELTA, clip) if example.delta else (clip,)
        for bad in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(InvalidInput, match="epsilon"):
                MECHANISMS[name].for_epsilon(bad, *arguments)


@pytest.mark.parametrize("name", ["Laplace", "Gaussian", "DiscreteLaplace", "DiscreteGaussian", "RunningSums"])
def test_neighbours_have_the_same_support(name: str) -> None:
    """Catches floating-point noise, whose set of possible sums tells the answer beneath it (Mironov 2012): whatever the
    rows, an answer is a whole number of the grid's steps, and integer noise reaches all of them."""
    example, unit = EXAMPLES[name], Unit()
    mechanism, clip, _ = made(name, unit)
    rows = [1 / 3, 0.1, 2.0**-30, 0.7] if name in ("Laplace", "Gaussian") else example.rows
    for data in (rows, [*rows, rows[0]], rows[1:]):
        for seed in range(50):
            value = mechanism.release(example.query(clip, data), rng=SeededRng(seed)).value
            steps = np.asarray(value, dtype=np.float64) / mechanism.grid.step
            assert (steps == np.rint(steps)).all()
