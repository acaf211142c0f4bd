"""`report compare` names a best run only where the intervals tell."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from privet.core.errors import InvalidInput
from privet.core.scores import Trial
from privet.report import Public, Score, compare, compare_page
from privet.report.figures.accuracy import accuracy_by_epsilon
from privet.report.figures.teachers import accuracy_by_teachers
from privet.report.ranking import verdict_on
from privet.report.score_intervals import EXACT, NOISE, NOISE_AND_SAMPLING, SAMPLING, SELECTED
from privet.report.training_card import shareable
from tests.report.trained import trained

ON = "accuracy on the test file"


ROWS = "0" * 64


def score(low: float, high: float, *, covers: str = SAMPLING, name: str = "accuracy", rows: str = ROWS) -> Score:
    return Score(name, (low + high) / 2, "the test file", True, low, high, 0.95, covers, rows)


@pytest.mark.parametrize("rows", ["", "1" * 64])
def test_compare_names_no_best_across_different_test_rows(rows: str) -> None:
    """Fails when a best is named among scores on other test rows, or on rows that an old card does not record."""
    why = "the test rows differ" if rows else "the test rows of b are not recorded"
    assert verdict_on(ON, {"a": score(0.6, 0.7), "b": score(0.8, 0.9, rows=rows)}) == f"{ON}: no best is named: {why}"
    card = shareable(trained())
    cards = {
        run: replace(card, scores=(Public(score(low, low + 0.05, rows=own)),), compared=())
        for run, low, own in (("a", 0.5, ROWS), ("b", 0.9, rows), ("c", 0.7, ROWS))
    }
    first, second = compare(cards).verdicts
    assert first.startswith(f"{ON}, of a and c, which share their test rows: c is best")
    assert second == f"{ON}: b cannot be compared: the test rows differ or are not recorded"


def test_compare_names_no_best_on_private_rows() -> None:
    """Fails when a best is named among runs whose held-out rows nobody can compare; also where both record a digest."""
    for rows in ("", ROWS):
        own = {
            run: score(low, low + 0.1, covers=NOISE_AND_SAMPLING, rows=rows) for run, low in (("a", 0.5), ("b", 0.8))
        }
        said = verdict_on(ON, own)
        assert "no best is named: held-out rows are private" in said
        assert "is best" not in said


def test_compare_of_different_epsilons_is_cautioned() -> None:
    """Fails when runs of different ε stand side by side without a word about it, or runs of one ε with it."""
    card = shareable(trained())
    guarantee = card.privacy.guarantee.value
    weaker = replace(guarantee, epsilon=replace(guarantee.epsilon, upper=guarantee.epsilon.upper + 1))
    other = replace(card, privacy=replace(card.privacy, guarantee=Public(weaker)))
    assert any("the ε of the runs differ (a: " in each for each in compare({"a": card, "b": other}).cautions)
    assert not any("weaker" in each for each in compare({"a": card, "b": card}).cautions)


def test_score_rows_is_a_digest_and_old_scores_have_none() -> None:
    """Fails when a card could carry rows in place of their digest, or a score of an earlier version is refused."""
    with pytest.raises(InvalidInput, match="SHA-256"):
        score(0.1, 0.2, rows="37,north,yes")
    old = json.loads(score(0.1, 0.2).to_json())
    del old["record"]["rows"]
    assert Score.from_json(json.dumps(old)).rows == ""


def test_compare_names_a_best_where_intervals_are_apart() -> None:
    """Fails when a resolved difference is not told, or the joint confidence is that of one interval."""
    said = verdict_on(ON, {"a": score(0.6, 0.7), "b": score(0.8, 0.9), "c": score(0.5, 0.79)})
    assert said == f"{ON}: b is best: its interval lies beyond all others, with 85 % confidence for all 3 together"


def test_compare_names_no_best_where_intervals_overlap() -> None:
    """Fails when the larger of two values is called best although the intervals overlap, or touch."""
    for other in (0.75, 0.7):
        said = verdict_on(ON, {"a": score(0.6, other), "b": score(0.7, 0.9), "c": score(0.1, 0.2)})
        assert said == f"{ON}: the difference is not resolved: the intervals of b and a overlap"


def test_compare_takes_the_smaller_error_as_better() -> None:
    """Fails when the largest error is called best."""
    name = "mean absolute error"
    said = verdict_on("error", {"a": score(1.0, 2.0, name=name), "b": score(3.0, 4.0, name=name)})
    assert said.startswith("error: a is best")
    assert "not known" in verdict_on("x", {"a": score(1.0, 2.0, name="x"), "b": score(3.0, 4.0, name="x")})


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Score("accuracy", 0.99, "the test file"), "b has no interval recorded"),
        (score(0.98, 0.99, covers="the noise"), "the interval of b covers the noise alone"),
        (score(0.98, 0.99, covers=NOISE), "the interval of b covers the noise alone"),
        (score(0.98, 0.99, covers=""), "the interval of b covers nothing that is recorded"),
        (score(0.98, 0.99, covers=EXACT), "the interval of b covers these rows alone"),
        (score(0.98, 0.99, covers=NOISE_AND_SAMPLING + SELECTED), "but not the choice of the best"),
        (Score("accuracy", None, "the test file"), "b has no such score"),
    ],
)
def test_compare_names_no_best_where_an_interval_is_missing_or_partial(bad: Score, why: str) -> None:
    """Fails when a score without an interval, or with one that leaves randomness out, takes part in a ranking."""
    said = verdict_on(ON, {"a": score(0.6, 0.7), "b": bad})
    assert "no best is named" in said
    assert why in said
    assert "is best" not in said


def test_many_intervals_leave_no_confidence() -> None:
    """Fails when a best is named among so many runs that some interval is expected to miss."""
    runs = {f"r{n}": score(0.02 * n, 0.02 * n + 0.01) for n in range(25)}
    assert "no confidence" in verdict_on(ON, runs)


def test_compare_of_cards_says_it_and_shows_every_interval() -> None:
    """Fails when the table or the page has a score without its interval, or a page names a best by value alone."""
    card = shareable(trained())
    better, worse = (replace(card, scores=(Public(score(low, low + 0.1)),), compared=()) for low in (0.8, 0.5))
    found = compare({"good": better, "bad": worse})
    assert found.head[7] == "interval"
    assert found.rows[0][7] == "80.00 % to 90.00 % (sampling)"
    assert found.verdicts[0].startswith(f"{ON}: good is best")
    assert "good is best" in compare_page({"good": better, "bad": worse})
    other = replace(worse, data=Public("another table"))
    assert compare({"good": better, "bad": other}).verdicts == ()
    old = compare({"first": card, "second": card})
    assert all("no best is named" in each for each in old.verdicts)
    assert {row[7].split(",")[0] for row in old.rows} >= {"no interval recorded"}


def test_figures_name_no_best() -> None:
    """Fails when the caption of a figure calls the largest value the best, or its table has no interval."""
    trials = [
        Public(Trial(run, "PATE", 1.0, 1e-5, score(low, low + 0.2), teachers))
        for run, low, teachers in (("a", 0.5, 10), ("b", 0.55, 20))
    ]
    for figure in (*accuracy_by_epsilon(trials), *accuracy_by_teachers(trials)):
        assert "best" not in figure.alternative.lower()
        assert "interval" in figure.head
