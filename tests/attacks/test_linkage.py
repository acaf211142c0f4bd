"""Linkage by hand and against a slow count; what coarsening hides and what it does not; claims that stand out."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import numpy as np
import pytest

from privet.attacks import LinkageScoring, link
from privet.attacks.generalized_values import compatible_pairs, parse_generalization
from privet.core.errors import InvalidInput

pytest.importorskip("polars")

VISITS = {
    "zip": ["130**", "130**", "148**", "14850"],
    "age": ["30-39", "30-39", "40-49", "51"],
    "ill": ["flu", "flu", "no", "asthma"],
    "who": ["p1", "p2", "p3", "p4"],
}
VOTERS = {
    "zip": ["13053", "13068", "14853", "14850", "99999"],
    "age": [34, 38, 45, 51, 60],
    "who": ["p1", "p2", "p3", "p4", "p9"],
}


def test_by_hand() -> None:
    """Fails when a candidate is missed or made up, a claim is not checked, or what all candidates share is not seen."""
    found = link(VISITS, VOTERS, ["zip", "age"], sensitive="ill", person="who")
    assert found.candidates.tolist() == [2, 2, 1, 1, 0]
    assert found.claims.tolist() == [-1, -1, 2, 3, -1]
    assert (found.unique, found.smallest, found.single, found.absent, found.claimed) == (2, 1, 2, 1, 2)
    assert found.present == 4
    assert found.right is not None
    assert found.right.lower == pytest.approx(0.025**0.5)  # two of two: p² = 2.5 %
    assert found.found is not None
    assert found.found.value == 0.5
    assert found.guess == 0.25
    learned = found.learned
    assert learned is not None
    assert (learned.people, learned.unmatched, learned.commonest) == (4, 2, 0.5)
    assert learned.right is not None
    assert learned.right.value == 1.0


def test_a_wrong_claim_is_counted_as_wrong() -> None:
    """Fails when claims are right by definition: here the only row with this postcode is somebody else's."""
    found = link({"zip": ["1", "2"], "who": ["a", "b"]}, {"zip": ["1", "3"], "who": ["c", "b"]}, ["zip"], person="who")
    assert found.claims.tolist() == [0, -1]
    assert found.right is not None
    assert (found.right.value, found.present, found.guess) == (0.0, 1, 0.0)


def test_one_row_is_not_two_people() -> None:
    """Fails when a row is claimed for two people who have no other candidate: one of the claims would be wrong."""
    found = link({"zip": ["1", "2"]}, {"zip": ["1", "1", "2"]}, ["zip"])
    assert (found.single, found.claimed) == (3, 1)
    assert found.claims.tolist() == [-1, -1, 1]
    nearly = link({"zip": ["13*", "2"]}, {"zip": ["131", "132", "2"]}, ["zip"])
    assert nearly.claims.tolist() == [-1, -1, 1]


def test_a_blank_row_hides_nobody() -> None:
    """Fails when a row without cells, or with fewer, stands beside one that agrees in all: then one bad row in a table
    would seem to protect everybody."""
    rows = {"zip": ["1", "2", "", "*"], "sex": ["f", "m", "f", ""], "ill": ["flu", "no", "no", "no"]}
    found = link(rows, {"zip": ["1", "2", "3"], "sex": ["f", "m", "f"]}, ["zip", "sex"], sensitive="ill")
    assert found.candidates.tolist() == [1, 1, 1]
    assert found.claims.tolist() == [0, 1, 2]  # for the third person, the row with the right sex is left
    assert found.learned is not None
    assert found.learned.people == 3
    assert link(rows, {"zip": ["3", ""], "sex": ["m", ""]}, ["zip", "sex"]).candidates.tolist() == [0, 0]


def test_a_missing_secret_is_not_known() -> None:
    """Fails when candidates whose secrets are missing are said to share one."""
    rows = {"zip": ["1", "2", "2", "3"], "ill": ["", "flu", "NA", "flu"]}
    found = link(rows, {"zip": ["1", "2", "3"]}, ["zip"], sensitive="ill").learned
    assert found is not None
    assert (found.people, found.commonest) == (1, 0.5)


def slow(published: Any, known: Any, names: list[str]) -> list[int]:
    """Candidates, pair by pair."""

    def agree(cell: str, other: str) -> bool:
        if "" in (cell, other) or cell == other:
            return True
        return bool(covered(cell) & covered(other)) and any(mark in cell + other for mark in "*-")

    def covered(cell: str) -> set[int]:
        if cell.endswith("*"):
            return set(range(10 * int(cell[0]), 10 * int(cell[0]) + 10))
        low, _, high = cell.partition("-")
        return set(range(int(low), int(high or low) + 1))

    counts = []
    for k in range(len(known[names[0]])):
        gaps = []
        for p in range(len(published[names[0]])):
            mine, theirs = [published[n][p] for n in names], [known[n][k] for n in names]
            if any(mine) and any(theirs) and all(map(agree, mine, theirs)):
                gaps.append(mine.count(""))
        counts.append(gaps.count(min(gaps, default=0)))
    return counts


@pytest.mark.parametrize(("seed", "at_once"), [(0, 1 << 22), (1, 1 << 22), (2, 40), (3, 1)])
def test_candidates_are_those_of_a_slow_count(seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when looking up by keys loses or adds a pair, whichever cells are blank or coarsened on whichever side, or
    one is lost between two parts of the work."""
    monkeypatch.setattr("privet.attacks.row_matching._PAIRS", at_once)
    monkeypatch.setattr("privet.attacks.row_matching._STEP", 50 if seed else 2000)
    drawn = np.random.default_rng(seed)

    def column(rows: int, coarse: bool) -> list[str]:
        cells = [str(each) for each in drawn.integers(10, 22, rows)]
        for place in np.flatnonzero(drawn.random(rows) < 0.1):
            cells[place] = ""
        if coarse:
            for place in np.flatnonzero(drawn.random(rows) < 0.3):
                cells[place] = cells[place] and (f"{cells[place][0]}*", "13-17", "15-20")[place % 3]
        return cells

    names = ["a", "b", "c"]
    published = {name: column(120, coarse=name != "c") for name in names}
    known = {name: column(90, coarse=name == "a") for name in names}
    expected = slow(published, known, names)
    assert len(set(expected)) > 5
    assert link(published, known, names).candidates.tolist() == expected


def test_coarsening_hides_rows_and_not_what_they_share() -> None:
    """Fails when a coarsened table is not linked at all, or a group with one secret is taken for a protected one."""
    drawn = np.random.default_rng(5)
    rows = 400
    zips, ages = drawn.permutation(np.arange(10000, 10000 + rows)), drawn.integers(20, 60, rows)
    people = {"zip": zips, "age": ages, "who": np.arange(rows)}
    ill = np.where(ages < 30, "none", np.array(["flu", "hiv", "none"])[drawn.integers(0, 3, rows)])
    plain = link(people | {"ill": ill}, people, ["zip", "age"], sensitive="ill", person="who")
    assert plain.claimed == rows
    coarse = {
        "zip": [f"{each // 100}**" for each in zips],
        "age": [f"[{each // 10 * 10}, {each // 10 * 10 + 10})" for each in ages],
        "ill": ill,
        "who": np.arange(rows),
    }
    found = link(coarse, people, ["zip", "age"], sensitive="ill", person="who")
    assert found.smallest >= 5
    assert (found.unique, found.claimed) == (0, 0)
    assert found.learned is not None
    assert found.learned.people == found.learned.unmatched == int((ages < 30).sum())
    assert found.learned.right is not None
    assert found.learned.right.value == 1.0


def test_people_who_are_not_there_are_not_claimed() -> None:
    """Fails when scores claim somebody among rows that have nothing to do with anybody. Three columns of ten values say
    too little for 1,000 rows: some agree in all three by chance. Eccentricity alone would claim a hundred people."""
    drawn = np.random.default_rng(3)
    one, other = ({name: drawn.integers(0, 10, 1000) for name in "abc"} for _ in range(2))
    assert link(one, other, ["a", "b", "c"], scoring=LinkageScoring()).claimed == 0
    assert link(one, other, ["a", "b", "c"], scoring=LinkageScoring(sure=1e-9)).claimed > 50
    coarse = {name: drawn.integers(0, 3, 1000) for name in "abc"}
    assert link(coarse, coarse, ["a", "b", "c"], scoring=LinkageScoring(sure=1e-9)).claimed == 0  # nothing stands out


def test_a_mistake_in_one_cell_hides_nobody() -> None:
    """Fails when a row that differs in one of four columns is not found by its score, or a claim is wrong."""
    drawn = np.random.default_rng(4)
    rows = 300
    people: dict[str, Any] = {name: drawn.integers(0, 200, rows).astype(str) for name in "abcd"}
    people["who"] = np.arange(rows)
    published = {name: cells.astype(object) for name, cells in people.items()}
    published["a"][:100] = "elsewhere"
    published["b"][100:150] = ""
    agreeing = link(published, people, list("abcd"), person="who")
    found = link(published, people, list("abcd"), person="who", scoring=LinkageScoring())
    assert (agreeing.claims[:100] == -1).all()
    assert found.claims[:100].tolist() == list(range(100))
    assert found.right is not None
    assert (found.claimed, found.right.value) == (rows, 1.0)


def test_the_chance_of_a_claim_by_hand() -> None:
    """Fails when a weight or the prior is wrong. Of four rows one agrees: u = 1/4, so that the ratio is 0.95·4 = 3.8,
    and 0.05/0.75 for each of the others; with even odds of being there, 3.8/(3.8 + 3·0.0667 + 4) = 0.475."""
    rows, person = {"zip": ["1", "2", "3", "4"]}, {"zip": ["1"]}
    for sure, claimed in ((0.474, 1), (0.476, 0)):
        assert link(rows, person, ["zip"], scoring=LinkageScoring(sure=sure, eccentricity=0.0)).claimed == claimed
    # The scores are log 3.8 and three times log(1/15): 4.04 between them, and a deviation of 1.75.
    for eccentricity, claimed in ((2.3, 1), (2.32, 0)):
        assert (
            link(rows, person, ["zip"], scoring=LinkageScoring(sure=0.4, eccentricity=eccentricity)).claimed == claimed
        )


def test_a_missing_cell_says_nothing_by_hand() -> None:
    """Fails when a missing cell is scored as one that agrees: of three rows with a cell one agrees, so that the ratio
    is 0.95·3 = 2.85; it is 0.05/0.667 for two, and 1 for the row without: 2.85/(2.85 + 0.15 + 1 + 4) = 0.356."""
    rows, person = {"zip": ["1", "2", "3", ""]}, {"zip": ["1"]}
    for sure, claimed in ((0.355, 1), (0.357, 0)):
        assert link(rows, person, ["zip"], scoring=LinkageScoring(sure=sure, eccentricity=0.0)).claimed == claimed


@pytest.mark.parametrize(
    ("rows", "people"),
    [
        ({"a": ["1", "2", "3"], "b": ["1", "2", "3"]}, {"a": ["1", "1"], "b": ["1", "9"]}),
        ({"a": ["1", "2", "3"], "b": ["1", "2", "3"]}, {"a": ["1", "1"], "b": ["1", "1"]}),
        ({"a": ["1", "1", "3"], "b": ["1", "1", "3"]}, {"a": ["1"], "b": ["1"]}),
    ],
    ids=["one row for two people", "people who are alike", "rows that are alike"],
)
def test_scores_claim_nothing_twice(rows: dict[str, list[str]], people: dict[str, list[str]]) -> None:
    """Fails when a claim by scores is one of two that cannot both be right, or one of two rows by its place."""
    lenient = LinkageScoring(inside=0.999, sure=0.3, eccentricity=0.0)
    alone = {"a": ["1"], "b": ["1"]}
    assert link({"a": ["1", "2", "3"], "b": ["1", "2", "3"]}, alone, ["a", "b"], scoring=lenient).claimed == 1
    assert link(rows, people, ["a", "b"], scoring=lenient).claimed == 0


@pytest.mark.parametrize(
    ("text", "covered", "other"),
    [
        ("130**", "13012", "13112"),
        ("1984-**-**", "1984-02-29", "1985-02-28"),
        ("30-39", "39", "40"),
        ("[30, 40)", "30", "40"),
        ("(30; 40]", "40", "30"),
        ("65+", "65", "64.9"),
        (">= 65", "70", "64"),
        (">65", "66", "65"),
        ("<18", "17", "18"),
        ("≤18", "18", "19"),
        ("20 to 29", "25", "flu"),
    ],
)
def test_what_a_coarsened_cell_covers(text: str, covered: str, other: str) -> None:
    """Fails when an end of a range is on the wrong side, or a kind of coarsening is not understood."""
    found = link({"x": [text, "else"]}, {"x": [covered, other]}, ["x"])
    assert found.candidates.tolist() == [1, 0]


def test_a_plain_cell_covers_nothing_else() -> None:
    """Fails when a date, a month, a word, a long postcode or a number with a sign is taken for something coarsened."""
    plain = ("1984-02-29", "1984-05", "flu", "-5", "a-b", "13053", "13053-1234", "+", "12X", "MAXX")
    assert [parse_generalization(text) for text in plain] == [None] * len(plain)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("130**", "13053", True),
        ("30-39", "30-34", True),
        ("30-39", "39-41", True),
        ("[30, 40)", "[40, 50)", False),
        ("30-39", "40-49", False),
        ("130**", "13***", True),
        ("130**", "131**", False),
        ("65+", "<70", True),
        ("65+", "<65", False),
        ("3*", "30-34", True),
        ("3*", "40-44", False),
        ("1**53", "13053", True),
        ("1**53", "13054", False),
        ("1**53", "130**", True),
        ("1**53", "13*53", True),
        ("1**53", "2****", False),
        ("130XX", "13053", True),
        ("130xx", "131**", False),
        ("1984-XX-XX", "1984-02-29", True),
    ],
)
def test_coarsening_is_seen_on_either_side(one: str, other: str, agree: bool) -> None:
    """Fails when the known table's coarsened cells, or two that overlap, are taken for others, or neighbours agree."""
    for mine, theirs in ((one, other), (other, one)):
        assert link({"x": [mine, "else"]}, {"x": [theirs]}, ["x"]).candidates.tolist() == [int(agree)]
    lenient = LinkageScoring(inside=0.999, sure=0.5, eccentricity=0.0)
    found = link({"x": [one, "else", "more"]}, {"x": [other]}, ["x"], scoring=lenient)
    assert found.claims.tolist() == [0 if agree else -1]


@pytest.mark.parametrize("cell", ["", "*****", "N/A", "na", "null", "NONE", "NaN", " ? "])
def test_cells_that_say_nothing(cell: str) -> None:
    """Fails when a suppressed cell is taken for a value that nobody has, so that its row seems to be safe."""
    rows = {"zip": [cell, "2"], "age": ["30", "40"]}
    found = link(rows, {"zip": ["1", "9"], "age": ["30", "40"]}, ["zip", "age"])
    assert (found.claims.tolist(), found.unmet) == ([0, -1], (1, 0))
    own = link({"zip": ["-", "NA"]}, {"zip": ["1", "NA"]}, ["zip"], missing=("-",))
    assert (own.candidates.tolist(), own.unmet) == ([0, 1], (0,))


def test_none_is_an_answer_among_secrets() -> None:
    """Fails when people without any illness are not learned of; a word that is called missing is."""
    rows = {"zip": ["1", "2"], "ill": ["None", "null"]}
    found = [link(rows, {"zip": ["1", "2"]}, ["zip"], sensitive="ill", missing=m).learned for m in (("none",), ())]
    assert [each and each.people for each in found] == [1, 2]
    plain = link(rows, {"zip": ["1", "2"]}, ["zip"], sensitive="ill").learned
    assert plain is not None
    assert plain.people == 1


def test_cells_that_agree_with_nobody_are_counted() -> None:
    """Fails when a spelling that is not understood lowers the risk and nothing is said."""
    rows = {"pay": ["$20,000-$30,000", "25000", "", "9"], "sex": ["f", "F", "m", "m"]}
    assert link(rows, {"pay": ["25000", "9"], "sex": ["f", "m"]}, ["pay", "sex"]).unmet == (1, 1)


def test_numbers_are_compared_as_numbers_and_codes_as_texts() -> None:
    """Fails when 30.0 is not 30, the same names of people are not the same, or codes with zeros before are merged."""
    found = link(
        {"age": ["30.0", "31.50"], "who": ["1.0", "2"]}, {"age": [30, 31.5], "who": [1, 2]}, ["age"], person="who"
    )
    assert found.claims.tolist() == [0, 1]
    assert found.present == 2
    assert link({"code": ["032", "30.0"]}, {"code": ["32", "30"]}, ["code"]).candidates.tolist() == [0, 0]


def test_days_are_spelt_alike() -> None:
    """Fails when a day, a midnight and a text of the same day differ."""
    day = dt.date(1984, 2, 29)
    cells = ([day], np.array(["1984-02-29"], dtype="datetime64[us]"), ["1984-02-29"], ["1984-**-**"])
    for one, other in itertools.product(cells, cells):
        assert link({"born": one}, {"born": other}, ["born"]).single == 1
    noon = np.array(["1984-02-29T12"], dtype="datetime64[us]")
    assert link({"born": noon}, {"born": [day]}, ["born"]).absent == 1


def test_what_is_learned_is_checked_on_those_who_are_there() -> None:
    """Fails when people who are not in the published table count for what is right of them, or their number is lost."""
    rows = {"zip": ["1", "2", "3"], "ill": ["a", "b", "b"], "who": [1, 2, 3]}
    found = link(rows, {"zip": ["1", "2", "3"], "who": [1, 8, 9]}, ["zip"], sensitive="ill", person="who").learned
    assert found is not None
    assert found.right is not None
    assert (found.people, found.tried, found.right.value) == (3, 1, 1.0)
    assert found.right.lower == pytest.approx(0.025)  # one of one


def test_a_column_that_follows_from_another_is_not_scored() -> None:
    """Fails when a postcode that stands there four times claims people who are in neither table, or a column is left
    out that follows by chance alone: where all postcodes differ, everything would."""
    drawn = np.random.default_rng(1)

    def copies(code: str) -> dict[str, Any]:
        zips = drawn.integers(0, 600, 400)
        return {
            "town": zips // 10,
            "zip": zips,
            "again": zips,
            "age": drawn.integers(0, 60, 400),
            "who": [f"{code}{i}" for i in range(400)],
        }

    found = link(copies("a"), copies("b"), ["town", "zip", "again", "age"], person="who", scoring=LinkageScoring())
    assert found.left_out == ("town", "again")
    assert found.claimed < 5
    few = {"zip": ["1", "2", "3", "3"], "sex": ["f", "m", "f", "f"]}
    assert link(few, few, ["zip", "sex"], scoring=LinkageScoring()).left_out == ()


def test_rows_that_are_alike_weigh_as_many() -> None:
    """Fails when a group of rows counts once in the deviation. Of 10 rows 9 are alike: with u = 1/10 the scores are
    log 9.5 and log(0.05/0.9) = −2.89, 5.14 apart; the deviation is 0.3·5.14 by rows, and would be half by groups."""
    rows = {"zip": ["1"] + ["2"] * 9}
    for eccentricity, claimed in ((3.3, 1), (3.4, 0)):
        found = link(rows, {"zip": ["1"]}, ["zip"], scoring=LinkageScoring(sure=0.4, eccentricity=eccentricity))
        assert found.claimed == claimed


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"on": ["town"]}, "published has no column 'town'; it has 'zip', 'age', 'ill', 'who'"),
        ({"on": ["ill"]}, "known has no column 'ill'"),
        ({"on": []}, "on names no column"),
        ({"on": ["zip", "zip"]}, "on names 'zip' twice"),
        ({"sensitive": "zip"}, "on names 'zip', which is also sensitive"),
        ({"person": "age", "on": ["zip"]}, "person is 'age', which is not unique"),
        (
            {"person": "id", "published": {"zip": ["1", "2"], "id": ["a", ""]}, "known": {"zip": ["1"], "id": ["a"]}},
            "person is 'id', which is missing in 1 rows of the published table: that is nobody",
        ),
        ({"published": {"zip": []}}, "published has no rows"),
        ({"known": {"zip": []}}, "known has no rows"),
        ({"confidence": 1.0}, "confidence"),
    ],
    ids=str,
)
def test_bad_input_is_refused(change: dict[str, Any], complaint: str) -> None:
    """Fails when something that cannot be linked is, or the refusal does not say what is wrong."""
    given: dict[str, Any] = {"published": VISITS, "known": VOTERS, "on": ["zip"]} | change
    with pytest.raises(InvalidInput) as caught:
        link(**given)
    assert complaint in str(caught.value)
    for name in ("errors", "inside", "sure"):
        with pytest.raises(InvalidInput, match=name):
            LinkageScoring(**{name: 1.0})


@pytest.mark.parametrize(
    "cells",
    [
        ("555-1234", "555-9876", "617-2000"),
        ("02139-4307", "02140-4300", "02141-9999"),
        ("10-1984", "11-1971", "12-1990"),
    ],
)
def test_numbers_with_a_dash_are_no_ranges(cells: tuple[str, ...]) -> None:
    """Fails when telephone numbers and postcodes are read as ranges that cover each other, and hide everybody."""
    mine, theirs = compatible_pairs(cells, cells[::-1])
    assert [(cells[a], cells[::-1][b]) for a, b in zip(mine, theirs, strict=True)] == [(each, each) for each in cells]


def test_sloppy_ranges_are_ranges() -> None:
    """Fails when 30-40 and 40-50, which share an end, or a range within another, are taken for plain texts."""
    mine, theirs = compatible_pairs(("30-40", "40-50", "30-50"), ("33", "40", "47"))
    assert list(zip(mine.tolist(), theirs.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (1, 1),
        (1, 2),
        (2, 0),
        (2, 1),
        (2, 2),
    ]
