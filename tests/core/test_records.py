"""The records: frozen, validated, hashable, JSON both ways; private values never show."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.core import (
    Bounded,
    Evidence,
    Guarantee,
    Interval,
    InvalidInput,
    Neighbours,
    Randomness,
    Release,
    Trust,
    Unit,
    Whose,
)
from privet.core.codec import Record
from privet.core.event import (
    EVENTS,
    SAMPLINGS,
    Composed,
    DiscreteGaussian,
    Event,
    Gaussian,
    Joint,
    Laplace,
    Poisson,
    Pure,
    Repeated,
    Sampled,
    Sampling,
    WithoutReplacement,
)
from privet.ledger import fingerprint_of
from tests.accounting.test_contract import EXAMPLES, events

UNIT = Unit()
RECORDS: list[Record] = [
    UNIT,
    Unit(Whose.USER, Neighbours.L2_BALL, Trust.LOCAL, 3, 0.5),
    Interval(0.0, math.inf),
    Guarantee(Interval(0.5, 1.0), 1e-5, UNIT, "pld", 0.01, ("real-valued noise",)),
    Evidence(0.4, 1e-5, 0.95, "loss threshold", 1000, UNIT, ("a sampled Gaussian",)),
    *events(),
    Composed((Gaussian(1.0), Repeated(Sampled(Gaussian(2.0), by=Poisson(0.1)), 7))),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_json_both_ways(record: Record) -> None:
    """The same record comes back, equal and with the same hash; the text carries a version."""
    text = record.to_json()
    root = Event if isinstance(record, Event) else type(record)
    again = root.from_json(text)
    assert again == record
    assert hash(again) == hash(record)
    assert json.loads(text)["privet"] == 1
    assert "NaN" not in text
    assert "Infinity" not in text


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_frozen(record: Any) -> None:
    """No field can be changed after it was checked."""
    field = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, field, getattr(record, field))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, "1", None, True])
@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"Joint"}))
def test_numbers_are_checked(name: str, bad: Any) -> None:
    """NaN, infinities, negatives and what is no number are refused, with the argument's name."""
    kind = (EVENTS | SAMPLINGS)[name]
    for field, good in EXAMPLES[name].items():
        if isinstance(good, bool) or not isinstance(good, (int, float)):
            continue
        with pytest.raises(InvalidInput, match=field):
            kind(**EXAMPLES[name] | {field: bad})


@pytest.mark.parametrize("delta", [1.0, 1.5, -1e-9, math.nan])
def test_delta_is_a_share(delta: float) -> None:
    """δ lies in [0, 1) wherever there is one."""
    for make in (
        lambda d: Guarantee(Interval(0, 1), d, UNIT, "pld"),
        lambda d: Evidence(0.1, d, 0.9, "loss", 10),
        lambda d: EVENTS["Approximate"](1.0, d),
    ):
        with pytest.raises(InvalidInput, match="delta"):
            make(delta)


def test_events_refuse_what_makes_no_sense() -> None:
    """Sampling a composition, a fractional grid step, a batch above its population, a Joint of other kinds."""
    with pytest.raises(InvalidInput, match="Joint"):
        Sampled(Composed((Gaussian(1.0),)), by=Poisson(0.1))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="bound"):
        DiscreteGaussian(3.0, 1.5)
    with pytest.raises(InvalidInput, match="batch_size"):
        WithoutReplacement(11, 10)
    with pytest.raises(InvalidInput, match="events"):
        Joint((Laplace(1.0),))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="count"):
        Repeated(Gaussian(1.0), -1)
    with pytest.raises(InvalidInput, match="neighbours"):
        Pure(1.0, Neighbours.L1_BALL)
    with pytest.raises(InvalidInput, match="radius"):
        Unit(radius=1.0)
    for ball in (Neighbours.L1_BALL, Neighbours.L2_BALL):
        with pytest.raises(InvalidInput, match="radius"):
            Unit(neighbours=ball)
    with pytest.raises(InvalidInput, match="whose"):
        Unit(whose="nobody")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"privet": 1, "record": {"is": "Gaussian", "noise_multiplier": 1.0, "noise_multiplier": 9.0}}',
        '{"privet": 1, "record": {"is": "Repeated", "event": {"is": "Gaussian", "noise_multiplier": 1.0}, "count": '
        + "9" * 5000
        + "}}",
        '{"privet": true, "record": {"is": "Gaussian", "noise_multiplier": 1.0}}',
        '{"privet": 1, "record": '
        + '{"is": "Repeated", "count": 1, "event": ' * 800
        + '{"is": "Gaussian", "noise_multiplier": 1.0}'
        + "}" * 801,
        '{"privet": 2, "record": {"is": "Gaussian", "noise_multiplier": 1.0}}',
        '{"privet": 1, "record": {"is": "Unheard", "x": 1}}',
        '{"privet": 1, "record": {"is": "Gaussian", "noise_multiplier": 1.0, "more": 2}}',
        '{"privet": 1, "record": {"is": "Gaussian"}}',
        '{"privet": 1, "record": {"is": "Gaussian", "noise_multiplier": -1}}',
        '{"privet": 1, "record": {"is": "Poisson", "sample_rate": 0.5}}',
        '{"privet": 1, "record": {"is": "Composed", "events": [1]}}',
        '{"privet": 1, "record": {"is": "Pure", "epsilon": 1.0, "neighbours": "friends"}}',
    ],
)
def test_bad_json_is_one_clear_error(text: str) -> None:
    """Cut, foreign, newer or invalid JSON is refused as input, never half read."""
    with pytest.raises(InvalidInput):
        Event.from_json(text)


@given(
    st.recursive(st.builds(Gaussian, st.floats(0.0, 1e9)), lambda inner: st.builds(Repeated, inner, st.integers(0, 9)))
)
def test_any_tree_survives_json(event: Event) -> None:
    """Numbers come back bit for bit."""
    assert Event.from_json(event.to_json()) == event


def test_sampling_schemes_have_json_too() -> None:
    """A scheme is a record of its own."""
    assert Sampling.from_json(Poisson(0.25).to_json()) == Poisson(0.25)


def test_bounded_never_shows_its_value() -> None:
    """Not by repr, str, format, JSON, pickle or copy; and a value without a bound cannot be one."""
    private = Bounded([123456789], UNIT, l1=1.0)
    assert "123456789" not in f"{private!r} {private} {private:>100}"
    attempts: list[Any] = [pickle.dumps, copy.copy, copy.deepcopy, json.dumps, vars, dataclasses.asdict]
    for attempt in (*attempts, lambda b: b.to_json()):
        with pytest.raises(TypeError):
            attempt(private)
    with pytest.raises(AttributeError):
        private.value = [1]
    with pytest.raises(InvalidInput, match="bound"):
        Bounded(1, UNIT)
    for bad in (math.nan, math.inf, -1.0):
        with pytest.raises(InvalidInput, match="l2"):
            Bounded(1, UNIT, l2=bad)


@pytest.mark.parametrize(
    "private", [Bounded(41, UNIT, l1=1.0), fingerprint_of(b"age\n41\n")], ids=lambda p: type(p).__name__
)
def test_no_state_can_be_taken_out(private: Any) -> None:
    """Catches the state that objects have by themselves, with the private value in it, for serialisers to ask for."""
    with pytest.raises(TypeError, match="private"):
        private.__getstate__()
    with pytest.raises(TypeError):
        private.__reduce__()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="private"):
            private.__reduce_ex__(protocol)
        with pytest.raises(TypeError):
            object.__reduce_ex__(private, protocol)


def released(value: float, event: Event, randomness: Randomness = Randomness.SECURE) -> Release[float]:
    return Release.of(value, event, unit=UNIT, source="clinic", randomness=randomness)


def test_release_json_has_everything_but_the_value() -> None:
    """Serialising a release must not publish it by accident."""
    record = released(987654.25, Laplace(1.0)).to_json()
    assert "987654" not in record
    for word in ("Laplace", "clinic", "add/remove", "secure"):
        assert word in record


def test_map_is_free_and_join_counts_each_draw_once() -> None:
    """Post-processing adds nothing; two draws of the same event are two."""
    first, second = released(1.0, Laplace(1.0)), released(2.0, Laplace(1.0))
    assert first.map(str).event == Laplace(1.0)
    assert Release.join(first.map(str), first).event == Laplace(1.0)
    assert Release.join(first, second).event == Composed((Laplace(1.0), Laplace(1.0)))
    both = Release.join(Release.join(first, second), second.map(str))
    assert len(both.draws) == 2
    other = Release.of(1.0, Laplace(1.0), unit=Unit(Whose.USER), source="clinic", randomness=Randomness.SECURE)
    with pytest.raises(InvalidInput, match="unit"):
        Release.join(first, other)


def test_a_release_without_draws_is_refused() -> None:
    """Fails when a value that no mechanism made passes as a release that costs nothing."""
    with pytest.raises(InvalidInput, match="draws"):
        Release(1.0, (), UNIT, Randomness.SECURE)


@pytest.mark.parametrize("rate", [0.0, 1.0000001, 1.5, 5.0])
def test_a_sample_rate_is_a_probability(rate: float) -> None:
    """Fails when a rate in percent, or one above 1 by rounding, is taken for a probability."""
    with pytest.raises(InvalidInput, match="sample_rate"):
        Poisson(rate)


def test_seeded_randomness_taints_all_that_follows() -> None:
    """Whatever a seeded draw flows into says so."""
    seeded = released(1.0, Laplace(1.0), Randomness.SEEDED)
    assert Release.join(released(1.0, Laplace(1.0)), seeded.map(str)).tainted
    assert '"tainted": true' in seeded.to_json()


def test_guarantee_prints_its_upper_end_rounded_up() -> None:
    """1.0001 is not printed as 1.000."""
    assert "ε ≤ 1.001" in str(Guarantee(Interval(0.0, 1.0001), 1e-5, UNIT, "pld"))
    assert "δ = 1.0000004e-05" in str(Guarantee(Interval(0.0, 1.0), 1.0000004e-5, UNIT, "pld"))
    assert "∞" in str(Guarantee(Interval(0.0, math.inf), 1e-5, UNIT, "none"))
    with pytest.raises(InvalidInput, match="lower"):
        Interval(2.0, 1.0)


def test_evidence_refutes_only_what_it_can() -> None:
    """Above the upper end, for the same unit, a δ that is no smaller, and without assumptions of its own."""
    promise = Guarantee(Interval(0.5, 1.0), 1e-5, UNIT, "pld")
    assert Evidence(1.2, 1e-5, 0.99, "canary", 100).refutes(promise)
    assert not Evidence(0.9, 1e-5, 0.99, "canary", 100).refutes(promise)
    assert not Evidence(1.2, 1e-6, 0.99, "canary", 100).refutes(Guarantee(Interval(0.5, 1.0), 1e-5, UNIT, "pld"))
    assert not Evidence(1.2, 1e-5, 0.99, "canary", 100, assumptions=("a sampled Gaussian",)).refutes(promise)
