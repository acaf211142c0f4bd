"""Attacks on tables on the internal page: of a run, or of a folder of their own; never on one that may be shared."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from privet.attacks import link, recovered_bits
from privet.core.errors import InvalidInput
from privet.core.guarantee import Guarantee, Interval
from privet.core.unit import Unit
from privet.report import Internal, Linked, Recovered, Tables, tables_page, write_internal, write_run, write_tables
from privet.report.frame import page_html
from privet.report.runs import read_card
from tests.cli.test_page import specs_in
from tests.report.test_training_page import EVIL, said
from tests.report.trained import trained

pytest.importorskip("polars")

LINKED = Linked.of(
    link(
        {"zip": ["1", "2", "2"], "ill": ["a", "b", "b"], "who": [1, 2, 3]},
        {"zip": ["1", "2", "3"], "who": [1, 2, 4]},
        ["zip"],
        sensitive="ill",
        person="who",
    ),
    "visits.csv",
    "voters.csv",
    person="who",
)
LINKED = replace(LINKED, unmet=(1,), left_out=("town",))
CLAIM = Guarantee(Interval(1.0, 1.0), 0.0, Unit(), "basic")
RECOVERED = Recovered.of(recovered_bits([0, 1, 1, 0], [0.1, 0.9, 0.2, 0.8], CLAIM), "least squares", 8, 1.0)
OPEN = Recovered.of(recovered_bits([0, 1, 1, 0], [0, 1, 1, 0]), "least squares", 8, float("inf"))
FOUND = Tables((LINKED,), (RECOVERED, OPEN))


def test_the_page_says_what_was_found() -> None:
    """Fails when a number is missing, or a figure is none that plotly knows, or the mark is."""
    text = tables_page(Internal(FOUND))
    shown = said(text)
    for words in (
        "INTERNAL: some of this",
        "claimed: this row is theirs 1 (33.33 %)",
        "claims that are right 100.00 % (2.50 % to 100.00 %)",
        "people in both tables who were found 50.00 % (1.26 % to 98.74 %)",
        "of them, with several candidates 1 (33.33 %)",
        "what is known is right, of the 2 of them in both tables 100.00 % (15.81 % to 100.00 %)",
        "cells of 'zip' that agree with nobody's 1 (33.33 %)",
        "not scored, as they follow from other columns town",
        "least squares, 8 1.000 0 4 50.00 % 6.76 % 93.24 % 50.00 % 73.11 %",
        "least squares, 8 ∞ 0 4 100.00 %",
    ):
        assert words in shown
    specs = specs_in(text)
    assert specs["linked-0"]["data"][0]["x"] == [1, 1, 1, 1, 2]
    assert specs["linked-0"]["data"][0]["textangle"] == 0
    _, line = specs["recovered"]["data"]
    assert (line["x"], line["y"]) == ([1.0], [0.5])
    for each in specs.values():
        go.Figure(json.loads(re.sub(r'"var\(--[\w-]+\)"', '"#123456"', json.dumps(each))))


def test_more_than_the_limit_is_told() -> None:
    """Fails when bits are found beyond the limit and the page is silent."""
    over = replace(RECOVERED, limit=0.05, baseline=0.05)
    assert "found more than the guarantee leaves" in said(tables_page(Internal(Tables(recovered=(over,)))))
    common = replace(RECOVERED, limit=0.05)  # the commoner value alone finds half
    assert "No interval lies above the limit" in said(tables_page(Internal(Tables(recovered=(common,)))))
    assert "No interval lies above the limit" in said(tables_page(Internal(FOUND)))


def test_the_limit_is_its_curve_between_points() -> None:
    """Fails when limits are joined by straight lines, which lie beside the curve; or when a curve is drawn through
    limits of another kind, of which only the points are known."""
    far = replace(RECOVERED, epsilon=16.0, limit=1 / (1 + math.exp(-16.0)))
    curve, _ = specs_in(tables_page(Internal(Tables(recovered=(far, RECOVERED)))))["recovered"]["data"]
    middle = dict(zip(curve["x"], curve["y"], strict=True))
    assert len(middle) > 100
    assert middle[min(middle, key=lambda x: abs(x - 4.0))] == pytest.approx(1 / (1 + math.exp(-4.0)), abs=1e-3)
    other = replace(RECOVERED, limit=0.6)
    points, _ = specs_in(tables_page(Internal(Tables(recovered=(other,)))))["recovered"]["data"]
    assert (points["mode"], points["x"], points["y"]) == ("markers", [1.0], [0.6])


@pytest.mark.parametrize(
    "change",
    [
        {"scored": True},
        {"inside": 0.9},
        {"sensitive": "pay"},
        {"person": None},
        {"confidence": 0.9},
        {"files": "elsewhere"},
        {"on": ("age",)},
        {"known": "others.csv"},
    ],
    ids=str,
)
def test_another_look_erases_none(change: dict[str, Any]) -> None:
    """Fails when a linkage that asked something else takes the place of an earlier one, or the same one does not."""
    other = replace(LINKED, **change)
    assert Tables((LINKED,)).plus(Tables((other,))).linked == (LINKED, other)
    assert Tables((LINKED,)).plus(Tables((replace(LINKED, claimed=0),))).linked == (replace(LINKED, claimed=0),)
    for changed in ({"answers": 9}, {"people": 5}, {"epsilon": 2.0}, {"what": "other"}):
        assert len(Tables((), (RECOVERED,)).plus(Tables((), (replace(RECOVERED, **changed),))).recovered) == 2


def test_text_cannot_leave_its_element() -> None:
    """Fails when the name of a file or of a column becomes markup."""
    evil = replace(LINKED, published=EVIL, known=EVIL, on=(EVIL,), sensitive=EVIL)
    text = tables_page(Internal(Tables((evil,), (replace(RECOVERED, what=EVIL),))))
    assert "<img" not in text.partition('<script type="application/json"')[0]
    assert text.count("<script") == tables_page(Internal(FOUND)).count("<script")
    drawn = json.dumps(specs_in(text))
    assert "<img" not in drawn


def test_json_keeps_all_of_it() -> None:
    """Fails when a number is lost on its way, or counts that cannot be are read."""
    assert Tables.from_json(FOUND.to_json()) == FOUND
    with pytest.raises(InvalidInput, match="more of them are counted"):
        replace(LINKED, claimed=4)
    with pytest.raises(InvalidInput, match="limit"):
        replace(RECOVERED, limit=1.5)


def test_a_folder_of_its_own(tmp_path: Path) -> None:
    """Fails when a second attack loses the first, the same one stands twice, others may read it, or a page that is not
    ours is lost."""
    page = write_tables(tmp_path / "new", Internal(FOUND))
    write_tables(tmp_path / "new", Internal(Tables((replace(LINKED, known="others.csv"), LINKED))))
    shown = said(page.read_text(encoding="utf-8"))
    assert shown.count("People of voters.csv in visits.csv") == 2  # a heading, and the caption of its numbers
    assert "People of others.csv in visits.csv" in shown
    assert "Secret bits found" in shown
    assert {path.stat().st_mode & 0o077 for path in page.parent.iterdir()} == {0}
    (page.parent / "internal-tables.json").write_text("{}")
    with pytest.raises(InvalidInput, match=r"out is .* cannot be read"):
        write_tables(page.parent, Internal(FOUND))
    (tmp_path / "internal.html").write_text("mine")
    with pytest.raises(InvalidInput, match="not a page of Privet's"):
        write_tables(tmp_path, Internal(FOUND))
    assert (tmp_path / "internal.html").read_text() == "mine"


def test_a_runs_page_without_its_card_is_left_alone(tmp_path: Path) -> None:
    """Fails when the internal page of a run, which cannot be written anew without `internal.json`, is lost."""
    before = page_html("INTERNAL: a run", [], (), footer="").encode()
    (tmp_path / "internal.html").write_bytes(before)
    with pytest.raises(InvalidInput, match=r"internal.html is a run's and internal.json is not beside it"):
        write_tables(tmp_path, Internal(FOUND))
    assert (tmp_path / "internal.html").read_bytes() == before
    assert not (tmp_path / "internal-tables.json").exists()


def test_a_runs_page_keeps_both(tmp_path: Path) -> None:
    """Fails when an attack on a table replaces a run's internal page, is lost where that is written anew, or changes a
    file that may be shared."""
    write_run(tmp_path, trained())
    shared = {name: (tmp_path / name).read_bytes() for name in ("card.json", "report.html")}
    write_tables(tmp_path, Internal(FOUND))
    for again in (False, True):
        if again:
            write_internal(tmp_path, read_card(tmp_path, internal=True))
        specs = specs_in((tmp_path / "internal.html").read_text(encoding="utf-8"))
        assert {"linked-0", "recovered", "profile"} <= set(specs)
    assert {name: (tmp_path / name).read_bytes() for name in shared} == shared
