"""The contract of a training card: what is internal never leaves, and a card is true to itself."""

from __future__ import annotations

import copy
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.accounting import epsilon
from privet.core.disclosure import Internal, Public
from privet.core.errors import InvalidInput
from privet.core.event import Gaussian, NonPrivate, Poisson, Repeated, Sampled
from privet.core.guarantee import Evidence
from privet.core.random import SeededRng
from privet.core.randomness import Randomness
from privet.core.release import Release
from privet.core.scores import Canaries, Score, Trial
from privet.core.unit import Neighbours, Unit
from privet.mechanisms import Count, DiscreteGaussianMechanism
from privet.report.attack_records import Attacked, Estimate, Picture, Point
from privet.report.card import RunCard, leaves
from privet.report.card_json import from_json, to_json
from privet.report.runs import write_run
from privet.report.training_card import TrainingCard, internal_fields, shareable
from privet.report.training_page import internal_page, report_page
from privet.report.training_price import growth_of, price_lines, trial_of
from privet.report.training_records import Measure, Series
from tests.report.trained import DELTA, curves, trained

MARK = "zq7-secret"
TYPED = (
    "rows", "schema", "scores", "history", "compared", "stored", "evidence", "attacks", "canaries", "pictures",
    "internal_remarks",
)  # fmt: skip
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
OWN = [field.name for field in fields(TrainingCard) if field.name != "privacy"]
INNER = [field.name for field in fields(RunCard)]


def marked(name: str, mark: str) -> Any:
    """A value of the kind that a field holds, with a mark in it."""
    score = Score(mark, 0.5, "rows")
    made: dict[str, Any] = {
        "rows": 98765432123456789,
        "schema": mark,
        "scores": score,
        "history": Series(Measure.LOSS, mark, (1.0,), (0.25,)),
        "compared": Trial(mark, "none", 1.0, 0.0, score),
        "stored": Trial(mark, "none", 1.0, 0.0, score),
        "evidence": Evidence(0.1, 0.0, 0.95, mark, 10),
        "attacks": Attacked(mark, 10, 10, 2, (), Estimate(0.5, 0.4, 0.6), 0.95, 0.95, (Point(0.1, 0.2, 0.1),)),
        "canaries": Canaries(mark, (0.5, 0.25), (True, False), 2),
        "pictures": Picture(mark, mark, PIXEL),
    }
    return made.get(name, mark)


def has_mark(text: str) -> bool:
    return MARK in text or "98765432123456789" in text or "98,765,432,123,456,789" in text


def planted(name: str, value: Any) -> TrainingCard:
    """The run's card with a value in a field, or among those of a field, by the front door."""
    held = getattr(trained(), name)
    changes: dict[str, Any] = {name: (*held, value) if isinstance(held, tuple) else value}
    return replace(trained(), **changes)


def forced(name: str, value: Any, inner: str = "") -> TrainingCard:
    """The same past every check, as a mistake elsewhere might do it."""
    card = copy.copy(shareable(trained()))
    if inner:
        value, privacy = copy.copy(card.privacy), value
        object.__setattr__(value, inner, privacy)
    object.__setattr__(card, name, value)
    return card


@settings(max_examples=40)
@given(name=st.sampled_from(OWN), rest=st.text(max_size=20))
def test_internal_in_any_field_reaches_nothing_that_is_shared(name: str, rest: str) -> None:
    """Fails when an internal value of any field, whatever its text, gets into report.html or card.json: the card
    cannot be made, or its shareable form lacks the value."""
    value = Internal(marked(name, MARK + rest))
    if name not in TYPED:
        with pytest.raises(InvalidInput, match=name):
            planted(name, value)
        return
    card = planted(name, value)
    with pytest.raises(InvalidInput, match="neither Public nor a Release"):
        report_page(card, curves())
    with pytest.raises(InvalidInput, match="neither Public nor a Release"):
        to_json(card)
    shared = shareable(card)
    assert not has_mark(report_page(shared, curves()))
    assert not has_mark(to_json(shared))
    assert has_mark(to_json(card, internal=True))
    assert has_mark(internal_page(card, curves()))
    assert name in internal_fields(card)


@pytest.mark.parametrize("wrap", [Internal, lambda x: Public((Internal(x),)), lambda x: Public(Internal(x)), str])
@pytest.mark.parametrize("name", [*OWN, *(f"privacy.{name}" for name in INNER)])
def test_the_renderers_refuse_by_type(name: str, wrap: Any) -> None:
    """Fails when a renderer trusts that the card was checked when it was made: here the value was forced in, also
    inside something public, or with no type at all."""
    outer, _, inner = name.partition(".")
    card = forced(outer, wrap(MARK), inner)
    with pytest.raises(InvalidInput, match="may not be shown"):
        report_page(card, curves())
    with pytest.raises(InvalidInput, match="may not be shown"):
        to_json(card)


def test_the_folder_keeps_them_apart(tmp_path: Path) -> None:
    """Fails when writing a run leaks what is internal into a shared file, or leaves internal files open to others."""
    score = Internal(Score(MARK, 0.5, "rows"))
    write_run(tmp_path, planted("scores", score))
    held = {path.name: has_mark(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()}
    assert held == {"card.json": False, "report.html": False, "internal.json": True, "internal.html": True}
    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.iterdir()}
    assert modes["internal.json"] == modes["internal.html"] == 0


def test_an_internal_value_does_not_show_itself() -> None:
    """Fails when a log line or a traceback would print it."""
    assert MARK not in f"{Internal(MARK)} {Internal(MARK)!r} {planted('schema', Internal(MARK))!r}"


@pytest.mark.parametrize("internal", [False, True])
def test_json_both_ways(internal: bool) -> None:
    """Fails when anything of a card is lost or changed on the way through its JSON."""
    card = trained() if internal else shareable(trained())
    text = to_json(card, internal=internal)
    back = from_json(text, internal=internal)
    assert to_json(back, internal=internal) == text
    assert {name for name, _ in leaves(back)} == {name for name, _ in leaves(card)}
    assert back.privacy == card.privacy
    assert [type(leaf) for _, leaf in leaves(back)] == [type(leaf) for _, leaf in leaves(card)]
    page = internal_page if internal else report_page
    assert page(back, curves()) == page(card, curves())


def test_the_internal_card_is_not_read_as_a_shared_one() -> None:
    """Fails when internal.json under the name card.json would be taken for something to share."""
    with pytest.raises(InvalidInput, match="neither Public nor a Release"):
        from_json(to_json(trained(), internal=True))


def refusal(text: str) -> str:
    try:
        from_json(text)
    except InvalidInput as error:
        return str(error)
    return ""


def test_broken_json_is_one_line() -> None:
    """Fails when a damaged card, a field missing or of another kind, ends in anything but one `InvalidInput`."""
    whole = json.loads(to_json(shareable(trained())))
    broken: list[Any] = [[], {}, {"privet-card": 1}, {"privet-card": True, "card": whole["card"]}, {"privet-card": 2}]
    for place in (whole["card"], whole["card"]["privacy"]):
        for name in list(place):
            kept = place.pop(name)
            broken.append(copy.deepcopy(whole))
            wrongs: tuple[Any, ...] = (
                7,
                "x",
                [],
                {"is": "Public", "value": {"is": "Nobody"}},
                {"is": "Public", "value": 7.5},
            )
            for wrong in (*wrongs, {"is": "Private", "value": 1}, [{"is": "Public", "value": "x"}]):
                place[name] = wrong
                if name not in ("described", "conditions", "notes", "warnings", "ladder") or wrong != []:
                    broken.append(copy.deepcopy(whole))
            place[name] = kept
    told = [refusal(json.dumps(each)) for each in broken]
    assert not any("\n" in text for text in told)
    # In a few of them a list that may be empty is empty, or a text is another text, and nothing is wrong.
    assert told.count("") <= len(TYPED)
    for text in ("", "{", "nonsense", "[" * 100_000, '{"privet-card": 2, "card": NaN}'):
        with pytest.raises(InvalidInput):
            from_json(text)


def noisy(unit: Unit | None = None) -> Release[Score]:
    noise = DiscreteGaussianMechanism(5.0, of=Count(unit or Unit()))
    return noise.release(Count(unit or Unit())([True] * 9), rng=SeededRng(1)).map(
        lambda n: Score("accuracy", n / 9, "x")
    )


def test_what_was_drawn_is_in_the_price() -> None:
    """Fails when a release that nobody priced stands on a page with a guarantee that does not cover it."""
    with pytest.raises(InvalidInput, match="does not hold everything that was drawn"):
        planted("scores", noisy())
    with pytest.raises(InvalidInput, match="does not hold everything that was drawn"):
        planted(
            "compared",
            Release.of(
                marked("compared", "x"),
                NonPrivate("a mistake"),
                unit=Unit(),
                source="digits",
                randomness=Randomness.SEEDED,
            ),
        )
    # Another run's score has its own bill.
    trial = trial_of("before", "DP-SGD", noisy(), DELTA)
    assert trial.value.epsilon == epsilon(trial.event, DELTA).epsilon.upper
    assert planted("stored", trial).stored == (trial,)


def test_a_release_for_another_unit_is_refused() -> None:
    """Fails when something that protects a replaced row stands under a guarantee for one that comes or goes."""
    with pytest.raises(InvalidInput, match="priced for another unit"):
        planted("scores", noisy(Unit(neighbours=Neighbours.REPLACE)))


def test_the_bill_adds_up() -> None:
    """Fails when a line is missing from the bill, or the randomness of the card is better than that of its parts."""
    card = trained()
    with pytest.raises(InvalidInput, match="does not add up"):
        replace(card, bill=Public(card.bill.value[1:]))
    with pytest.raises(InvalidInput, match="said to be secure"):
        replace(card, randomness=Public(Randomness.SECURE))
    total = card.privacy.guarantee.value
    lines = [line.guarantee.epsilon.upper for line in card.bill.value]
    assert max(lines) < total.epsilon.upper < sum(lines)
    assert total == epsilon(card.privacy.event.value, DELTA)


def test_one_plan_is_priced_as_privet_account_does() -> None:
    """Fails when the guarantee of a run that is nothing but its plan is not exactly the plan's own."""
    run = Repeated(Sampled(Gaussian(1.1), by=Poisson(0.1)), 20)
    card, bill = price_lines([("the model", run)], 1e-5, unit=Unit())
    assert card.guarantee.value == epsilon(run, 1e-5) == bill.value[0].guarantee
    growth = growth_of(lambda epoch: Repeated(run.event, 10 * epoch), 2, card.guarantee.value)
    assert growth.by_delta[1][-1] == card.guarantee.value.epsilon.upper
    assert growth.by_delta[1][0] == epsilon(Repeated(run.event, 10), 1e-5).epsilon.upper
    assert all(list(row) == sorted(row) for row in growth.by_delta)


def test_what_is_no_number_does_not_raise() -> None:
    """Fails when a loss that private rows made infinite or NaN stops the report, and so tells of them."""
    series = Series(Measure.LOSS, "rows", (1.0, 2.0, 3.0), (0.5, float("nan"), float("inf")))
    assert series.values == (0.5, None, float("inf"))
    card = planted("history", Internal(series))
    assert "–" in internal_page(card, curves())
    assert to_json(from_json(to_json(card, internal=True), internal=True), internal=True) == to_json(
        card, internal=True
    )
