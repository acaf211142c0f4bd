"""The two pages of a training run: complete, true to the card, and on their own."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.resources import files
from typing import Any

import plotly.graph_objects as go
import pytest

from privet.core.disclosure import Internal, Public
from privet.core.event import NonPrivate
from privet.core.guarantee import Evidence
from privet.core.randomness import Randomness
from privet.core.scores import Score, Trial
from privet.core.unit import Unit
from privet.report.curves import curves_of
from privet.report.origin import format_score
from privet.report.training_card import TrainingCard, shareable
from privet.report.training_page import internal_page, report_page
from privet.report.training_price import price_lines
from privet.report.training_records import Charged, Choice, Measure, Series
from privet.report.words import up
from tests.cli.test_page import Elements, specs_in
from tests.report.trained import curves, trained

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<a href='javascript:alert(3)'>x</a>"


def pages() -> dict[str, str]:
    return {
        "report": report_page(shareable(trained()), curves()),
        "internal": internal_page(trained(), curves()),
    }


def said(text: str) -> str:
    return " ".join(Elements(text).text).replace("\u00a0", " ")


def test_the_page_says_what_the_card_says() -> None:
    """Fails when a number, a setting, the command or a sentence of the card is missing from the page, or rounded the
    wrong way."""
    card = shareable(trained())
    shown = said(pages()["report"])
    assert f"ε ≤ {up(card.privacy.guarantee.value.epsilon.upper)}" in shown
    assert card.ledger is not None
    wanted = [
        card.command.value,
        *card.privacy.meaning.value.sentences,
        *card.privacy.conditions.value,
        *card.privacy.notes.value,
        *(text for choice in card.choices.value for text in (choice.name, choice.value, choice.why)),
        *(text for line in card.bill.value for text in (line.what, up(line.guarantee.epsilon.upper))),
        *(format_score(score.value.value, True) for score in card.scores),
        card.ledger.value.head,
        "No attack was run against this model",
        "The noise came from a seeded generator",
    ]
    assert [text for text in wanted if text not in shown] == []


def test_only_the_internal_page_has_what_is_internal() -> None:
    """Fails when the shared page shows a curve or score that was not paid for, or the internal one hides it."""
    shared, internal = pages()["report"], pages()["internal"]
    assert set(specs_in(internal)) - set(specs_in(shared)) == {"followed-loss", "followed-clipped"}
    assert "training rows" in internal
    own = shared.split("<footer>")[0] + json.dumps(specs_in(shared))
    assert "INTERNAL" not in own
    assert "training rows" not in own
    assert said(internal).strip().startswith("INTERNAL")
    assert re.search(r'<p class="mark">INTERNAL', internal)


@pytest.mark.parametrize("name", ["report", "internal"])
def test_figures_and_tables_have_the_same_numbers(name: str) -> None:
    """Fails when a picture and the table under it disagree, or plotly.js would not take the picture."""
    text = pages()[name]
    card = trained() if name == "internal" else shareable(trained())
    specs = specs_in(text)
    for spec in specs.values():
        go.Figure(json.loads(re.sub(r'"var\(--[\w-]+\)"', '"#123456"', json.dumps(spec))))
    assert card.growth is not None
    growth = card.growth.value
    for drawn, row in zip(specs["epochs"]["data"], growth.by_delta, strict=False):
        assert drawn["y"] == list(row)
        assert all(f"<td>{up(value)}</td>" in text for value in row)
    seen = [each.value for each in card.history if each.value.measure is Measure.ACCURACY]
    for drawn, series in zip(specs["followed-accuracy"]["data"], seen, strict=True):
        assert (drawn["x"], drawn["y"]) == (list(series.epochs), list(series.values))
    trials = [each.value for each in card.compared if each.value.method != "none"]
    figure = specs["accuracy-0"]["data"]
    points = [each for each in figure if each["mode"] == "markers"]
    assert [(*each["x"], *each["y"]) for each in points] == [(trial.epsilon, trial.score.value) for trial in trials]
    assert len({each["marker"]["symbol"] for each in points}) == len(trials)
    # Names in the picture itself would lie over points sooner or later: they are in the legend.
    told = [*(trial.method for trial in trials), *(["none (ε = ∞, INTERNAL)"] if name == "internal" else [])]
    assert [each["name"] for each in figure] == told


def evil(card: TrainingCard) -> TrainingCard:
    """The card with markup in every text that comes from outside."""
    score = Score(EVIL, 0.5, EVIL, True, 0.4, 0.6, 0.9, EVIL)
    fields: dict[str, Any] = {
        "command": Public(EVIL),
        "made": Public(EVIL),
        "data": Public(EVIL),
        "model": Public(EVIL),
        "choices": Public((Choice(EVIL, EVIL, EVIL),)),
        "bill": Public(tuple(replace(line, what=EVIL) for line in card.bill.value)),
        "versions": Public(((EVIL, EVIL),)),
        "ledger": Public(Charged(EVIL, (EVIL,), EVIL)),
        "schema": Public(EVIL),
        "scores": (Public(score),),
        "history": tuple(Public(Series(measure, EVIL, (1.0,), (0.5,))) for measure in Measure),
        "compared": (Public(Trial(EVIL, "DP-SGD", 1.0, 1e-5, score)),),
        "stored": (Public(Trial(EVIL, "none", float("inf"), 0.0, score)),),
        "evidence": (Public(Evidence(0.1, 1e-5, 0.95, EVIL, 10, assumptions=(EVIL,))),),
        "privacy": replace(
            card.privacy,
            described=Public(((EVIL, EVIL),)),
            conditions=Public((EVIL,)),
            notes=Public((EVIL,)),
            warnings=Public((EVIL,)),
        ),
    }
    return replace(card, **fields)


def test_text_cannot_leave_its_element() -> None:
    """Fails when a column name, a run's name or a command with markup in it becomes markup, on the page, in an
    attribute, or in a label that plotly.js draws."""
    card = evil(trained())
    for text in (report_page(card, curves()), internal_page(card, curves())):
        elements = Elements(text)
        assert elements.all("img") == elements.all("a") == []
        assert len(re.findall(r"<script", text.split("<footer>")[0])) == 0
        assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
        specs = json.dumps(specs_in(text))
        assert "<a " not in specs
        assert "<img" not in specs


def test_a_seeded_run_is_told_in_red() -> None:
    """Fails when a run whose noise anyone can repeat looks like a private one, or a private one like a seeded one."""
    assert trained().randomness.value is Randomness.SEEDED
    assert '<p class="alarm"><strong>Seeded:</strong>' in pages()["report"]
    secure = report_page(shareable(trained(seeded=False)), curves(seeded=False))
    assert "alarm" not in secure.split("<main>")[1]


def test_a_model_without_privacy_has_no_guarantee() -> None:
    """Fails when the baseline's page promises anything, or its scores are shown to others."""
    privacy, bill = price_lines([("the model", NonPrivate("no noise was added"))], 1e-4, unit=Unit())
    card = replace(
        trained(),
        method=Public("none"),
        privacy=privacy,
        bill=bill,
        growth=None,
        scores=(Internal(Score("accuracy", 0.97531, "the test file")),),
        history=(),
        compared=(),
    )
    text = report_page(shareable(card), curves_of(privacy))
    assert "<h1 class=none>ε = ∞" in text
    assert "97.53" not in text
    assert "97.53" in internal_page(card, curves_of(privacy))


def test_evidence_has_its_place() -> None:
    """Fails when an attack that refutes the guarantee is not told as such."""
    upper = trained().privacy.guarantee.value.epsilon.upper
    weak, strong = (Evidence(found, 1e-4, 0.95, "a canary", 1000) for found in (0.5, upper + 1))
    shown = said(report_page(replace(shareable(trained()), evidence=(Public(weak), Public(strong))), curves()))
    assert "agrees with it" in shown
    assert "refutes the guarantee" in shown
    assert "No attack was run" not in shown


def test_the_style_names_only_colours_that_exist() -> None:
    """Fails when a colour is missing, or paper would not be white: the light scheme stands in the print rule."""
    page, training = (
        files("privet.report").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "training.css")
    )
    known = dict(re.findall(r"(--[\w-]+): ([^;]+);", page.split("@media")[0]))
    assert set(re.findall(r"var\((--[\w-]+)\)", training)) <= set(known)
    assert dict(re.findall(r"(--[\w-]+): ([^;]+);", training.split("@media print")[1])) == known
