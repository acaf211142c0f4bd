"""Attacks and audits on a card: what is scored on real rows is internal whatever one says, and evidence turns red."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from privet.core.errors import InvalidInput
from privet.core.guarantee import Evidence, Guarantee, Interval
from privet.core.unit import Unit
from privet.report import Attacked, Canaries, Estimate, Internal, Picture, Point, Public, Remembered
from privet.report.audit_page import audit_page
from privet.report.card_json import from_json, to_json
from privet.report.figures.attack_results import BLIND
from privet.report.training_card import TrainingCard, shareable
from privet.report.training_page import internal_page, report_page
from privet.report.verdict import Verdict, epsilon_range, verdict_of, worst_verdict
from privet.report.words import down, up
from tests.cli.test_page import specs_in
from tests.report.test_training_card import PIXEL
from tests.report.test_training_page import EVIL, said
from tests.report.trained import curves, trained

SECRET = "zq8-secret"
FOUND = Attacked(
    "LiRA", 300, 2000, 16,
    (Estimate(0.0123, 0.01, 0.02, 0.001), Estimate(0.0456, 0.03, 0.06, 0.01)),
    Estimate(0.5678, 0.55, 0.58), 0.95, 0.95,
    (Point(0.001, 0.0123, 0.0), Point(0.01, 0.0456, 0.0211), Point(0.1, 0.2, 0.15)),
    "shadow models without privacy",
)  # fmt: skip
CANARIES = Canaries("gradient canaries", (3.0, 2.5, -1.0, 0.5), (True, True, False, False), 2)


def attacked() -> TrainingCard:
    """The digits' card with everything that attacks add to one."""
    return replace(
        trained(),
        attacks=(Internal(FOUND), Internal(replace(FOUND, attack=SECRET))),
        canaries=(Public(CANARIES),),
        pictures=(Internal(Picture("what a gradient shows", SECRET, PIXEL)),),
        remembered=Internal(Remembered(f'{{"data": "{SECRET}"}}', "ab", "cd")),
        evidence=(Public(Evidence(0.25, 1e-4, 0.95, "gradient canaries, one run", 4)),),
    )


def test_what_is_scored_on_real_rows_cannot_be_shared() -> None:
    """Fails when a curve, a picture or a path reaches a shared page or card, or can be wrapped as something public."""
    card = attacked()
    for text in (report_page(shareable(card), curves()), to_json(shareable(card))):
        assert SECRET not in text
        assert "1.23 %" not in text
        assert "attacked" not in specs_in(text) if text.startswith("<!") else True
        assert "gradient canaries" in text
    shown = internal_page(card, curves())
    assert SECRET in shown
    assert "1.23 % (1.00 % to 2.00 %)" in said(shown)
    for name, value in (
        ("attacks", (Public(FOUND),)),
        ("pictures", (Public(Picture("a", "b", PIXEL)),)),
        ("remembered", Public(Remembered("a", "b", "c"))),
    ):
        changed: dict[str, Any] = {name: value}
        with pytest.raises(InvalidInput, match="touches private rows"):
            replace(trained(), **changed)


def test_json_keeps_all_of_it() -> None:
    """Fails when an attack, a canary's coin or a picture is lost or changed on its way through JSON."""
    text = to_json(attacked(), internal=True)
    assert to_json(from_json(text, internal=True), internal=True) == text
    assert from_json(text, internal=True).attacks[0].value == FOUND


def test_rates_come_before_the_area_under_the_curve() -> None:
    """Fails when AUC stands before the members that are found at few false alarms, or the figure lacks the limit."""
    shown = said(internal_page(attacked(), curves()))
    assert shown.index("TPR at 0.1 % FPR") < shown.index("TPR at 1 % FPR") < shown.index("0.5678 (0.55")
    spec = specs_in(internal_page(attacked(), curves()))["attacked"]
    limit = spec["data"][0]
    assert list(zip(limit["x"], limit["y"], strict=True)) == [tuple(point) for point in curves().roc]
    assert spec["layout"]["xaxis"]["type"] == spec["layout"]["yaxis"]["type"] == "log"
    (curve, bound) = (each for each in spec["data"] if each.get("legendgroup") == "LiRA")
    assert curve["y"] == [0.0123, 0.0456, 0.2]
    assert bound["y"] == [0.0211, 0.15]  # what is proven of nothing is not drawn
    for each in specs_in(internal_page(attacked(), curves())).values():
        go.Figure(json.loads(re.sub(r'"var\(--[\w-]+\)"', '"#123456"', json.dumps(each))))


@pytest.mark.parametrize("lower", [0.49, 0.51])
def test_the_blind_baseline_is_told_apart(lower: float) -> None:
    """Fails when what never sees the model is called the strongest attack on it, or the page is silent where members
    and outsiders differ by themselves."""
    blind = replace(FOUND, attack=BLIND, hits=(Estimate(0.9, 0.8, 1.0, 0.001),), auc=Estimate(0.9, lower, 1.0))
    card = replace(attacked(), attacks=(Internal(FOUND), Internal(blind)))
    shown = said(internal_page(card, curves()))
    assert "LiRA is the strongest of 1:" in shown
    assert ("Members and non-members differ by themselves" in shown) is (lower > 0.5)


def test_canaries_are_counted_on_both_sides() -> None:
    """Fails when a canary is missing from the histogram, or stands on the other side."""
    spec = specs_in(report_page(shareable(attacked()), curves()))["canaries-0"]
    inside, outside = spec["data"]
    assert (sum(inside["y"]), sum(outside["y"])) == (2, 2)
    assert inside["y"][-1] == 1  # the highest of all
    assert outside["y"][0] == 1  # the lowest of all


@pytest.mark.parametrize("page", ["report", "internal", "audit"])
def test_evidence_above_the_guarantee_is_red(page: str) -> None:
    """Fails when a page of a refuted run looks like any other, or one of a run that holds is alarmed."""
    upper = trained(seeded=False).privacy.guarantee.value.epsilon.upper
    for found, red in ((0.5, False), (upper + 1, True)):
        evidence = Public(Evidence(found, 1e-4, 0.95, "canaries", 1000))
        card = replace(trained(seeded=False), evidence=(evidence,))
        if page == "audit":
            text = audit_page(card.privacy, curves(seeded=False), (evidence,), what="x")
        elif page == "report":
            text = report_page(shareable(card), curves(seeded=False))
        else:
            text = internal_page(card, curves(seeded=False))
        assert ('<p class="alarm"><strong>Refuted:' in text) is red
        bars = specs_in(text)["adversaries"]
        assert (bars["data"][0]["marker"]["color"] == ["var(--mark)"]) is red
        assert bars["layout"]["shapes"][0]["x0"] == upper


def paged(page: str, evidence: Evidence, canaries: Canaries = CANARIES) -> str:
    """One of the pages, with this evidence on it."""
    card = replace(trained(seeded=False), evidence=(Public(evidence),), canaries=(Public(canaries),))
    if page == "audit":
        held = (Public(canaries),)
        return audit_page(card.privacy, curves(seeded=False), (Public(evidence),), what="x", canaries=held)
    return (report_page if page == "report" else internal_page)(
        shareable(card) if page == "report" else card, curves(seeded=False)
    )


@pytest.mark.parametrize("page", ["report", "internal", "audit"])
def test_evidence_with_assumptions_above_the_guarantee_is_amber(page: str) -> None:
    """Fails when a run that may lack noise looks like any other, when what rests on assumptions is called a proof, or
    when an interval's lower end stands above its upper one."""
    guarantee = trained(seeded=False).privacy.guarantee.value
    for above, assumed, delta, name in (
        (1.0, ("normal noise",), 1e-4, "doubted"),
        (1.0, (), 1e-4, "refuted"),
        (1.0, ("normal noise",), 1e-9, None),  # of a smaller δ nothing follows
        (-0.1, ("normal noise",), 1e-4, None),
    ):
        epsilon = guarantee.epsilon.upper + above
        text = paged(page, Evidence(epsilon, delta, 0.95, "steps", 1000, assumptions=assumed))
        assert (f'<header class="{name}">' in text) is (name is not None)
        assert ("<header>" in text) is (name is None)
        assert ('<p class="doubt"><strong>Look closer:' in text) is (name == "doubted")
        assert ('<p class="alarm"><strong>Refuted:' in text) is (name == "refuted")
        colour = {"doubted": "var(--amber)", "refuted": "var(--mark)", None: "var(--two)"}[name]
        assert specs_in(text)["adversaries"]["data"][0]["marker"]["color"] == [colour]
        assert (f"{down(epsilon)} to {up(guarantee.epsilon.upper)}" in said(text)) is (above < 0)
        if name == "doubted":
            assert f"at least {down(epsilon)} if its assumptions hold, against" in said(text)
            assert "or noise is missing" in said(text)
    for name in ("doubted", "refuted"):
        assert re.search(rf"header\.{name} h1 {{ color: var\(--(?!one)", paged(page, Evidence(0, 0, 0.9, "x", 1)))


@pytest.mark.parametrize("page", ["report", "audit"])
@pytest.mark.parametrize(("guesses", "told"), [(6, True), (7, False)])
def test_guesses_that_can_prove_nothing_say_so(page: str, guesses: int, told: bool) -> None:
    """Fails when 0 is set beside a guarantee as if something had been tried: at 99 % it takes seven guesses, as six
    are all right once in 64 times by chance."""
    held = Canaries("gradient canaries", tuple(map(float, range(8))), (True,) * 8, guesses)
    evidence = Evidence(0.0, 0.0, 0.99, "gradient canaries, one run", 8)
    shown = said(paged(page, evidence, held))
    assert ("even if every guess were right, nothing could be proven with 6 guesses at δ = 0" in shown) is told
    assert ("use more canaries" in shown) is told


def test_an_audits_page_takes_nothing_internal() -> None:
    """Fails when evidence of real rows could be put on the page of an audit."""
    evidence: Any = Internal(Evidence(0.1, 1e-4, 0.95, SECRET, 10))
    with pytest.raises(InvalidInput, match="may not be shown"):
        audit_page(trained().privacy, curves(), (evidence,), what="x")


def test_text_cannot_leave_its_element() -> None:
    """Fails when the name of an attack or of a picture becomes markup."""
    card = replace(
        attacked(),
        attacks=(Internal(replace(FOUND, attack=EVIL, note=EVIL)),),
        canaries=(Public(replace(CANARIES, kind=EVIL)),),
        pictures=(Internal(Picture(EVIL, EVIL, PIXEL)),),
        evidence=(Public(Evidence(0.1, 1e-5, 0.95, EVIL, 10, assumptions=(EVIL,))),),
    )
    text = internal_page(card, curves())
    shown = text.split("<footer>")[0] + json.dumps(specs_in(text))
    assert all(markup not in shown for markup in ("<script", "<a href", "<img src=x"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Estimate(0.5, 0.6, 0.7),
        lambda: Estimate(0.5, -0.1, 0.7),
        lambda: Canaries("x", (1.0,), (True, False), 1),
        lambda: Canaries("x", (float("nan"),), (True,), 1),
        lambda: Canaries("x", (1.0,), (1,), 1),  # type: ignore[arg-type]
        lambda: Canaries("x", (1.0,), (True,), 2),
        lambda: Picture("a", "b", "not a picture"),
        lambda: replace(FOUND, members=0),
    ],
)
def test_what_cannot_be_is_refused(make: Any) -> None:
    """Fails when a record would hold an interval, coins or a picture that are none."""
    with pytest.raises(InvalidInput):
        make()


def test_a_refutation_outweighs_an_alarm_and_what_cannot_be_compared_is_not() -> None:
    """Fails when amber hides red, or evidence for another unit or a smaller δ narrows what is claimed."""
    claimed = Guarantee(Interval(0, 1), 1e-5, Unit(), "pld")
    alarm = Evidence(2.0, 1e-5, 0.95, "steps", 10, assumptions=("normal noise",))
    proof = Evidence(2.0, 1e-5, 0.95, "coins", 10)
    assert worst_verdict([alarm, proof], claimed) is worst_verdict([proof, alarm], claimed) is Verdict.REFUTES
    assert worst_verdict([alarm], claimed) is Verdict.ALARMS
    for other in (replace(proof, epsilon=0.9, delta=0.0), replace(proof, epsilon=0.9, unit=Unit(records=2))):
        assert verdict_of(other, claimed) is Verdict.APART
        assert " to " not in epsilon_range(other, claimed)
