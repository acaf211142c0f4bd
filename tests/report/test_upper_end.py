"""Every place that tells people an ε tells the upper end: the lower one is shown only where it is called so."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from rich.console import Console

from privet.accounting import Accountant, AccountantAnswer
from privet.cli import audit as audit_command
from privet.cli import console, ledger_view, mix, run_training
from privet.core.disclosure import Public
from privet.core.event import Gaussian
from privet.core.guarantee import Evidence, Guarantee, Interval
from privet.core.unit import Unit
from privet.ledger import Ledger
from privet.report.account import price_run
from privet.report.audit_page import audit_page
from privet.report.card import RunCard
from privet.report.curves import Curves, curves_of
from privet.report.notebook import guarantee_table
from privet.report.page import page
from privet.report.runs import compare, trials_of
from privet.report.terminal import show
from privet.report.training_card import TrainingCard, shareable
from privet.report.training_page import report_page
from privet.report.words import headline
from tests.report.trained import trained

LOWER, UPPER = 0.1371, 7.8913
LOW, LOW_UP, HIGH = "0.137", "0.138", "7.892"
"""Rounded down, and up: no other number on a page begins like these."""
WIDE = Interval(LOWER, UPPER)
BILL = [(Interval(0.2461 + line / 100, 5.1234 + line), f"{5.124 + line:.3f}") for line in range(3)]


def wide(guarantee: Guarantee, interval: Interval = WIDE) -> Guarantee:
    return replace(guarantee, epsilon=interval)


@cache
def run_card() -> RunCard:
    """Of a run whose interval is as wide as no accountant's is."""
    found = price_run(Gaussian(4.0), 1e-5, unit=Unit())
    rungs = tuple(
        AccountantAnswer(each.accountant, None if each.guarantee is None else wide(each.guarantee), each.refusal)
        for each in found.ladder.value
    )
    return replace(found, guarantee=Public(wide(found.guarantee.value)), ladder=Public(rungs))


@cache
def card() -> TrainingCard:
    """The card of a real run, with such intervals in its guarantee and in every line of its bill."""
    found = trained()
    bill = tuple(
        replace(line, guarantee=wide(line.guarantee, interval))
        for line, (interval, _) in zip(found.bill.value, BILL, strict=True)
    )
    privacy = replace(found.privacy, guarantee=Public(wide(found.privacy.guarantee.value)))
    object.__setattr__(changed := replace(found), "privacy", privacy)
    object.__setattr__(changed, "bill", Public(bill))
    return changed


@cache
def curves() -> Curves:
    return curves_of(price_run(Gaussian(4.0), 1e-5, unit=Unit()))


def told(show_it: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    show_it()
    return capsys.readouterr().out


def printed(thing: object) -> str:
    written = io.StringIO()
    Console(file=written, width=400, color_system=None).print(thing)
    return written.getvalue()


def plain(html: str) -> str:
    """The text of a page, cells apart."""
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " | ", body))


def require_upper(text: str, *, lower_is_called_so: bool = False) -> None:
    """The upper end is there, and the lower one nowhere but behind "ε at least"."""
    assert HIGH in text
    if lower_is_called_so:
        text = re.sub(r"ε at least[ |]*" + re.escape(LOW), "", text, count=1)
    assert LOW not in text
    assert LOW_UP not in text  # as `up` would write it


def test_upper_end_in_one_line() -> None:
    """Fails when a guarantee, or its headline, is printed by its lower end."""
    stated = run_card().guarantee.value
    require_upper(str(stated))
    require_upper(headline(stated))


def test_upper_end_in_a_notebook() -> None:
    """Fails when the rows of a notebook's table are mixed up."""
    require_upper(plain(guarantee_table(run_card().guarantee.value)), lower_is_called_so=True)


def test_upper_end_on_the_page_of_a_described_run() -> None:
    """Fails when the header, the key numbers or the ladder of accountants shows the lower end."""
    found = plain(page(run_card(), curves()))
    require_upper(found, lower_is_called_so=True)
    assert f"ε ≤ {HIGH}" in found
    assert re.search(rf"ε at most[ |]*{HIGH}", found)


def test_upper_end_on_the_page_of_a_training_run() -> None:
    """Fails when the header, the key numbers or a line of the bill shows the lower end."""
    found = plain(report_page(shareable(card()), curves()))
    require_upper(found, lower_is_called_so=True)
    assert f"ε ≤ {HIGH}" in found
    for line, (interval, most) in zip(card().bill.value, BILL, strict=True):
        assert re.search(rf"{re.escape(line.what)}[ |]*{most}", found)
        assert f"{interval.lower:.3f}"[:5] not in found
    assert re.search(rf"everything together[ |]*{HIGH}", found)


def test_upper_end_on_a_terminal() -> None:
    """Fails when `privet report` shows the lower end of the whole, or of a line of the bill."""
    found = printed(show(card()))
    require_upper(found)
    for line, (interval, most) in zip(card().bill.value, BILL, strict=True):
        assert re.search(rf"{re.escape(line.what)}\W+{most}", found)
        assert f"{interval.lower:.3f}"[:5] not in found
    assert re.search(rf"together\W+{HIGH}", found)


def test_upper_end_in_a_comparison_of_runs() -> None:
    """Fails when runs are compared by their lower ends, in the table or in the figure."""
    found = compare({"one": card()})
    require_upper(" | ".join(cell for row in found.rows for cell in row))
    assert {each.value.epsilon for each in trials_of("one", card())} >= {UPPER}
    assert LOWER not in {each.value.epsilon for each in trials_of("one", card())}


def evidence(epsilon: float) -> Evidence:
    return Evidence(epsilon, 1e-5, 0.95, "canaries", 100)


def test_upper_end_beside_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    """Fails when evidence is held against the lower end, which would refute what holds, or shown beside it."""
    stated = run_card().guarantee.value
    shown = told(lambda: audit_command._show("of a run", stated, [evidence(1.5)]), capsys)
    require_upper(shown)
    assert "REFUTED" not in shown
    assert "REFUTED" in told(lambda: audit_command._show("of a run", stated, [evidence(8.5)]), capsys)
    drawn = plain(audit_page(run_card(), curves(), what="a run", evidence=[Public(evidence(1.5))]))
    assert f"1.500 to {HIGH}" in drawn
    assert LOW not in drawn


def test_upper_end_beside_the_canaries_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The same for what `privet train --audit` shows."""
    changed = replace(card())
    object.__setattr__(changed, "privacy", run_card())
    object.__setattr__(changed, "evidence", (Public(evidence(1.5)),))
    shown = told(lambda: run_training._show_evidence(changed), capsys)
    require_upper(shown)
    assert "REFUTED" not in shown


def test_upper_end_of_every_accountant(capsys: pytest.CaptureFixture[str]) -> None:
    """Fails when the ladder of accountants, on a terminal, shows lower ends, or puts them in that order."""
    from privet.cli import account

    shown = told(lambda: account._show(run_card(), None), capsys)
    assert re.search(r"ε at most\W+ε at least", shown)
    answered = [each for each in run_card().ladder.value if each.guarantee is not None]
    assert len(re.findall(rf"{HIGH}\W+{LOW}", shown)) == len(answered)
    require_upper(re.sub(rf"{HIGH}\W+{LOW}", HIGH, shown))
    rungs = price_run(Gaussian(4.0), 1e-5, unit=Unit()).ladder.value
    uppers = [each.guarantee.epsilon.upper for each in rungs if each.guarantee is not None]
    assert uppers == sorted(uppers)
    assert rungs[0].accountant is Accountant.PLD


def test_upper_end_of_a_ledger_s_plan(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    """Fails when `privet ledger show` says the lower end of what was spent."""
    with Ledger(f"{tmp_path}/ledger.db") as ledger:
        ledger.create("rows", epsilon=10.0, delta=1e-3)
        with ledger.reserve("rows", Gaussian(4.0), purpose="a sum").drawing():
            pass
        statement = ledger.show("rows")
    assert statement.planned is not None
    changed = replace(statement, planned=wide(statement.planned))
    require_upper(told(lambda: ledger_view.show_statement(changed), capsys))


def test_upper_end_of_a_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a mixing plan is told by its lower end."""

    class Planned:
        guarantee, epsilon = run_card().guarantee.value, 2.0

    require_upper(mix._price(Planned()))  # type: ignore[arg-type]


def test_console_is_what_these_tests_read() -> None:
    """Fails when commands write elsewhere, so that nothing above would be looked at."""
    assert callable(console.line)
