"""Every row of the syllabus does what it says, nothing is missing from it, and the page is up to date."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest

from tools import syllabus
from tools.snippets import SnippetError
from tools.syllabus import Kind, Row, load, render, run

ROWS = load(syllabus.SOURCE.read_text(encoding="utf-8"))
GOOD = {"name": "x", "kind": "example", "about": "It prints.", "show": "print(1)", "expect": "1"}


def toml(*rows: dict[str, str]) -> str:
    return "\n".join("\n".join(["[[row]]", *(f"{key} = {value!r}" for key, value in row.items())]) for row in rows)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind.value}-{row.name}")
def test_the_row_does_what_it_says(row: Row, tmp_path: Path) -> None:
    """Fails when a snippet or command breaks, or prints something else."""
    run(row, tmp_path)


def gaps(offered: Iterable[str], kind: Kind) -> list[str]:
    """What the code offers and no row shows, and rows that outlived what they showed."""
    offers, shown = set(offered), {row.name for row in ROWS if row.kind is kind}
    missing = [f"no row of kind {kind.value!r} is named {name!r}" for name in sorted(offers - shown)]
    return missing + [f"the row {name!r} shows a {kind.value} that is gone" for name in sorted(shown - offers)]


def test_every_event_has_a_row() -> None:
    """Fails when an event is added that no row shows, or a row is left behind by an event that is gone."""
    events: dict[str, type] = import_module("privet.core.event").EVENTS
    assert gaps((event.__name__ for event in events.values()), Kind.EVENT) == []


def test_every_sampling_has_a_row() -> None:
    """Fails when a way of sampling is added that no row shows."""
    samplings: dict[str, type] = import_module("privet.core.event").SAMPLINGS
    assert gaps((sampling.__name__ for sampling in samplings.values()), Kind.SAMPLING) == []


def test_every_accountant_has_a_row() -> None:
    """Fails when an accountant is added that no row shows; its name there is the enum's value."""
    accountants: type[Enum] = import_module("privet.accounting").Accountant
    assert gaps((str(accountant.value) for accountant in accountants), Kind.ACCOUNTANT) == []


def test_every_mechanism_is_in_a_row() -> None:
    """Fails when a mechanism is added that no row shows."""
    shown = {word for row in ROWS if row.kind is Kind.MECHANISM for word in row.name.split()}
    table = import_module("privet.mechanisms").MECHANISMS
    assert {entry.kind.__name__ for entry in table.values()} <= shown


def test_a_gap_is_seen() -> None:
    """Fails when the comparison above could not find a missing or an outlived row."""
    assert gaps([*(row.name for row in ROWS if row.kind is Kind.RECORD), "Zebra"], Kind.RECORD) == [
        "no row of kind 'record' is named 'Zebra'"
    ]
    assert "the row 'Unit' shows a record that is gone" in gaps([], Kind.RECORD)


def test_the_page_is_up_to_date() -> None:
    """Fails when the syllabus was changed and `make syllabus` was not run."""
    assert syllabus.PAGE.read_text(encoding="utf-8") == render(ROWS)


@pytest.mark.parametrize(
    "change",
    [
        {"expect": "2"},
        {"expect": "1 and more"},
        {"expect": "", "pattern": "^2"},
        {"show": "$ echo 2"},
        {"show": "$ echo 1; exit 3"},
        {"show": "1 / 0"},
    ],
    ids=str,
)
def test_a_row_that_does_not_hold_is_caught(change: dict[str, str], tmp_path: Path) -> None:
    """Fails when the runner of rows has gone blind."""
    (good,) = load(toml(GOOD))
    assert run(good, tmp_path) == "1\n"
    (bad,) = load(toml(GOOD | change))
    with pytest.raises((SnippetError, ZeroDivisionError)):
        run(bad, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"expect": ""},
        {"pattern": "1"},
        {"show": " "},
        {"about": "no full stop"},
        {"kind": "thing"},
        {"name": ""},
        {"expects": "1"},
    ],
    ids=str,
)
def test_a_malformed_row_is_refused(change: dict[str, str]) -> None:
    """Fails when a row that could never fail, or a misspelt key, would be accepted."""
    with pytest.raises(ValueError, match=r"row|Kind"):
        load(toml(GOOD | change))


def test_a_row_that_occurs_twice_is_refused() -> None:
    """Fails when a second row of the same kind and name would hide the first."""
    with pytest.raises(ValueError, match="example x"):
        load(toml(GOOD, GOOD))
    assert len(load(toml(GOOD, GOOD | {"kind": "event"}))) == 2


def test_commands_and_patterns_are_rendered() -> None:
    """Fails when the page would show a command as Python, or leave out what must come out."""
    page = render(load(toml(GOOD, GOOD | {"name": "y", "show": "$ echo 12", "expect": "", "pattern": "1."})))
    assert "```console not-run: tests/test_syllabus.py runs it\n$ echo 12\n```\n\nprints a match of `1.`" in page
    assert page.index("### x") < page.index("### y")
