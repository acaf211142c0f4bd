"""What every mechanism owes: an event before data, a price that is kept, a release that says what was done."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from privet import accounting
from privet.core import Randomness, Release, Unit
from privet.core.bounded import Bounded
from privet.core.errors import InvalidInput
from privet.core.event import Event
from privet.core.random import SeededRng
from privet.core.unit import Trust
from privet.mechanisms import MECHANISMS, BoundedSum, VectorSum
from privet.mechanisms.trial import TrialSettings, auditable, mechanism_trial
from tests.mechanisms.examples import CASES, DELTA, EPSILON, build, clipper_of, delta_of, made, query_of

every = pytest.mark.parametrize(
    ("name", "unit"), CASES, ids=lambda value: str(value) if isinstance(value, str) else f"{value}".replace(" ", "-")
)


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
    delta = delta_of(name)
    paid = accounting.epsilon(mechanism.event, delta, unit=unit).epsilon.upper
    assert paid <= EPSILON
    # (ε, δ) blocks of replaced users and of groups lose something in group privacy
    assert paid >= (0.9 if delta == 0 or name in ("gaussian", "peeling") else 0.4) * EPSILON


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
    own = list(MECHANISMS[name].rows)
    seen = set()
    for rows in (
        own,
        [],
        own[:1],
        [None] * 4,
        [float("nan")] * 3,
        [object()],
        [[1, 2], 3],
        [1e308, -1e308],
    ):
        usable = [[0.0] * clip.dimension, rows[0]] if isinstance(clip, VectorSum) and rows and rows != own else rows
        value = mechanism.release(query_of(name, clip, usable), rng=SeededRng(7)).value
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
    for name in MECHANISMS:
        unit = next(unit for each, unit in CASES if each == name)
        mechanism = made(name, unit)[0]
        assert build(name, clipper_of(name, unit)) == mechanism
        assert hash(mechanism) is not None


def test_post_processing_and_joining_are_free_or_composed() -> None:
    """Catches a map that is charged, and a join that counts one draw twice or two draws once."""
    mechanism, clip, query = made("discrete-laplace", Unit())
    first = mechanism.release(query, rng=SeededRng(1))
    second = mechanism.release(query_of("discrete-laplace", clip), rng=SeededRng(2))
    assert first.map(lambda counts: counts.clip(0)).event == first.event
    twice = Release.join(first, Release.join(second, first.map(sum)))
    assert len(twice.draws) == 2
    assert accounting.epsilon(twice.event, 0.0).epsilon.upper == pytest.approx(2 * EPSILON)


def test_calibration_asks_for_something() -> None:
    """Catches targets that cannot be met and are taken all the same."""
    for name, entry in MECHANISMS.items():
        clip = clipper_of(name, next(unit for each, unit in CASES if each == name))
        for bad in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(InvalidInput, match="epsilon"):
                entry.build(bad, DELTA, clip)


@pytest.mark.parametrize("name", [name for name, entry in MECHANISMS.items() if entry.scale or name == "running-sums"])
def test_neighbours_have_the_same_support(name: str) -> None:
    """Catches floating-point noise, whose set of possible sums tells the answer beneath it (Mironov 2012): whatever the
    rows, an answer is a whole number of the grid's steps, and integer noise reaches all of them."""
    mechanism, clip, _ = made(name, Unit())
    rows = [1 / 3, 0.1, 2.0**-30, 0.7] if isinstance(clip, BoundedSum) else list(MECHANISMS[name].rows)
    for data in (rows, [*rows, rows[0]], rows[1:]):
        for seed in range(50):
            value = mechanism.release(query_of(name, clip, data), rng=SeededRng(seed)).value
            steps = np.asarray(value, dtype=np.float64) / mechanism.grid.step
            assert (steps == np.rint(steps)).all()


@pytest.mark.parametrize("name", auditable())
def test_an_audit_can_draw_from_every_mechanism(name: str) -> None:
    """Catches a mechanism that an audit cannot build by its name, or whose two inputs are not what its unit says."""
    trial = mechanism_trial(name, TrialSettings(trials=1000))
    outputs = [trial.draw(present, SeededRng(3)) for present in (True, False)]
    assert all(len(each) == trial.trials == 1000 for each in outputs)
    assert accounting.epsilon(trial.event, trial.delta, unit=trial.unit).epsilon.upper <= 1.0


def test_an_audit_takes_only_the_settings_of_its_mechanism() -> None:
    """Catches noise that is given to a mechanism of another kind, or beside an ε, and is silently left out."""
    for name, settings, problem in (
        ("gaussian", TrialSettings(noise=("scale", 1.0)), "scale is given, and gaussian has none"),
        ("laplace", TrialSettings(noise=("scale", 1.0), epsilon=1.0), "say the same thing twice"),
        ("laplace", TrialSettings(categories=3), "categories is given"),
        ("gaussian", TrialSettings(delta=0.0), "needs δ > 0"),
        ("nonsense", TrialSettings(), "use one of: laplace, gaussian"),
        ("laplace", TrialSettings(trials=10), "trials"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            mechanism_trial(name, settings)
