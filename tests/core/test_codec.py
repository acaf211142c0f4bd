"""JSON that says what it means: infinite numbers and the word for them are told apart, and old texts are still read."""

from __future__ import annotations

import dataclasses
import json
import math
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from privet.accounting.meaning import Meaning
from privet.core import Draw, Evidence, Guarantee, Interval, InvalidInput, Unit
from privet.core.codec import Record
from privet.core.event import Composed, Event, Gaussian, NonPrivate, Repeated
from privet.ledger.records import Budget, Entry, Form, State, Statement, Verification

WORDS = ("infinity", "-infinity", "Infinity", "∞", "is")


def _budget(word: str) -> Budget:
    return Budget(word, Unit(), 3.0, 1e-6, (2.0, math.inf), (0.5, math.inf), False, 1.0, 5e-7, 2, 1, 0, False, word)


def _entry(word: str) -> Entry:
    event = Composed((NonPrivate(word), Gaussian(1.0)))
    return Entry(word, word, State.DRAWING, event, word, Form.BLOCK, math.inf, 0.0, 1, False, word, word)


def _guarantee(word: str) -> Guarantee:
    return Guarantee(Interval(0.0, math.inf), 1e-5, Unit(), word, math.inf, (word, "another"))


@pytest.mark.parametrize("word", WORDS)
def test_a_word_stays_a_word_and_an_infinite_number_a_number(word: str) -> None:
    """Catches a reader that goes by the looks of a text: a purpose that reads "infinity" is no number."""
    records: list[Record] = [
        NonPrivate(word),
        _guarantee(word),
        Evidence(0.4, 1e-5, 0.95, word, 10, Unit(), (word,)),
        Draw(word, NonPrivate(word), word),
        _budget(word),
        _entry(word),
        Statement(_budget(word), (_entry(word),), _guarantee(word), word),
        Verification((word,), 1, (word,), False, (word,), (word,)),
        Meaning((), (), (word,)),
    ]
    for record in records:
        again = (Event if isinstance(record, Event) else type(record)).from_json(record.to_json())
        assert again == record
        assert repr(again) == repr(record)


# Written before fields were read by their types. Ledgers hold such texts under their hashes: not a byte may change.
_UNIT = (
    '{"is": "Unit", "neighbours": "add/remove", "radius": 0.0, "records": 1, "trust": "central", "whose": "example"}'
)
OLD: list[tuple[Record, str]] = [
    (
        Repeated(Gaussian(1.0), 3),
        '{"count": 3, "event": {"is": "Gaussian", "noise_multiplier": 1.0}, "is": "Repeated"}',
    ),
    (Unit(), _UNIT),
    (Interval(0.0, math.inf), '{"is": "Interval", "lower": 0.0, "upper": "infinity"}'),
    (
        Guarantee(Interval(0.5, math.inf), 1e-5, Unit(), "rdp", 0.0, ("real-valued noise",)),
        '{"accountant": "rdp", "assumptions": ["real-valued noise"], "delta": 1e-05, "epsilon": {"is": "Interval", '
        '"lower": 0.5, "upper": "infinity"}, "is": "Guarantee", "numeric_error": 0.0, "unit": ' + _UNIT + "}",
    ),
    (
        Budget("clinic", Unit(), 3.0, 1e-6, (2.0, math.inf), (0.5, 0.1), False, 1.0, 5e-7, 2, 1, 0, False, "ab"),
        '{"active": 1, "basic": false, "delta": 1e-06, "delta_left": 5e-07, "entries": 2, "epsilon": 3.0, '
        '"epsilon_left": 1.0, "head": "ab", "is": "Budget", "keyed": false, "name": "clinic", "orders": [2.0, '
        '"infinity"], "unit": ' + _UNIT + ', "used": [0.5, 0.1], "version": 0}',
    ),
]


@pytest.mark.parametrize(("record", "body"), OLD, ids=lambda each: type(each).__name__)
def test_the_format_is_what_it_was(record: Record, body: str) -> None:
    """Catches a change of format without a new version, by which stored records could not be read or compared."""
    text = '{"privet": 1, "record": ' + body + "}"
    assert record.to_json() == text
    assert (Event if isinstance(record, Event) else type(record)).from_json(text) == record


def test_deep_trees_are_read_as_deep_as_before() -> None:
    """Catches a reader that needs more of the stack for each level, so that an event in a ledger is too deep for it."""
    event: Event = Gaussian(1.0)
    for _ in range(400):
        event = Repeated(event, 1)
    assert Event.from_json(event.to_json()).to_json() == event.to_json()


def _allowed(wanted: Any) -> bool:
    """Whether a field of this type can be read back without a doubt."""
    if isinstance(wanted, UnionType):
        options = set(get_args(wanted)) - {NoneType}
        return len(options) == 1 and all(map(_allowed, options))
    if get_origin(wanted) is tuple:
        item, *rest = get_args(wanted)
        return rest == [...] and _allowed(item)
    return isinstance(wanted, type) and issubclass(wanted, (bool, int, float, str, Enum, Record))


def _all_kinds(root: type[Record]) -> list[type[Record]]:
    found = [each for kind in root.__subclasses__() for each in (kind, *_all_kinds(kind))]
    return [kind for kind in found if dataclasses.is_dataclass(kind)]


def test_no_field_can_be_read_in_two_ways() -> None:
    """Catches a new record with a field that is a text or a number, whose "infinity" would be either."""

    @dataclasses.dataclass(frozen=True)
    class Doubtful(Record):
        either: float | str

    kinds = _all_kinds(Record)
    assert {Doubtful, Budget, Draw, Gaussian, Meaning} <= set(kinds)
    bad = {kind.__name__ for kind in kinds if not all(map(_allowed, get_type_hints(kind).values()))}
    assert bad == {"Doubtful"}


def test_assumptions_are_a_list_of_texts() -> None:
    """Catches a text that is taken apart: "abc" is not the three assumptions "a", "b" and "c"."""
    guarantee, evidence = _guarantee("pld"), Evidence(0.4, 1e-5, 0.95, "loss", 10)
    bad: Any
    for bad in ("abc", "", {"is": "Unit"}, None, 3, [3], [""], [["a"]]):
        for record in (guarantee, evidence):
            data = json.loads(record.to_json())
            data["record"]["assumptions"] = bad
            with pytest.raises(InvalidInput, match="assumptions"):
                type(record).from_json(json.dumps(data))
    for bad in ("abc", "", b"abc", None, 3, (3,), ("",)):
        with pytest.raises(InvalidInput, match="assumptions"):
            Guarantee(Interval(0.0, 1.0), 1e-5, Unit(), "pld", assumptions=bad)
        with pytest.raises(InvalidInput, match="assumptions"):
            Evidence(0.4, 1e-5, 0.95, "loss", 10, assumptions=bad)
    listed: Any = ["a", "b"]
    assert Guarantee(Interval(0.0, 1.0), 1e-5, Unit(), "pld", assumptions=listed).assumptions == ("a", "b")


def test_a_list_is_read_only_where_one_is_wanted() -> None:
    """Catches a text in the place of a list, and a list in the place of a text."""
    for field, bad in (
        ("problems", "row 7"),
        ("budgets", ""),
        ("problems", {"is": "Verification", "budgets": [], "rows": 0}),
        ("rows", [1]),
    ):
        data = json.loads(Verification(("clinic",), 12).to_json())
        data["record"][field] = bad
        with pytest.raises(InvalidInput, match=field):
            Verification.from_json(json.dumps(data))


def test_a_draw_can_be_read_back() -> None:
    """Catches a draw whose JSON does not know what events are."""
    draw = Draw("clinic", Repeated(Gaussian(1.5), 7), "ab12")
    assert Draw.from_json(draw.to_json()) == draw
    with pytest.raises(InvalidInput, match="event"):
        Draw.from_json(draw.to_json().replace(json.dumps(json.loads(draw.event.to_json())["record"]), "7"))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_words_that_are_no_json_are_refused(word: str) -> None:
    """Catches Python's own reading of NaN: a record with it would compare as below every limit."""
    text = Interval(0.0, 1.0).to_json().replace("1.0", word)
    with pytest.raises(InvalidInput, match=f"JSON holds {word}"):
        Interval.from_json(text)
    purpose = Draw("a", NonPrivate("NaN"), "NaN")
    assert Draw.from_json(purpose.to_json()) == purpose


@pytest.mark.parametrize("field", ["state", "form"])
def test_an_unknown_state_is_refused_by_name(field: str) -> None:
    """Catches a bare ValueError of the enum, which does not say what is known."""
    data = json.loads(_entry("a").to_json())
    data["record"][field] = "spent"
    with pytest.raises(InvalidInput, match=f"{field} is 'spent'; use one of: "):
        Entry.from_json(json.dumps(data))


def test_an_end_that_is_no_double_is_refused() -> None:
    """Catches an OverflowError in place of the argument's name."""
    with pytest.raises(InvalidInput, match="upper is too large"):
        Interval(0, 10**400)
    with pytest.raises(InvalidInput, match="numeric_error is too large"):
        Guarantee(Interval(0.0, 1.0), 1e-5, Unit(), "pld", 10**400)
    for wrong in (True, math.nan, -1.0, "1", -math.inf):
        with pytest.raises(InvalidInput, match="lower"):
            Interval(wrong, math.inf)  # type: ignore[arg-type]
    assert Interval(0, math.inf).upper == math.inf
