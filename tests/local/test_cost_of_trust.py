"""What each model of trust costs, in numbers, in a figure and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privet import accounting
from privet.cli.run import main
from privet.core import event
from privet.core.errors import InvalidInput
from privet.core.event import Shuffled
from privet.local.randomized_response import GeneralizedRandomizedResponse
from privet.local.shuffling import (
    ONE_IN_A_CROWD,
)
from privet.local.shuffling.compare import cost_of_trust
from privet.report.figures.trust import trust
from tests.local.test_mixing import plan_of, written


def test_the_price_of_trust() -> None:
    """Catches errors that do not fall as they should (1/n, 1/n, 1/√n), or an ε₀ whose batch costs more than ε."""
    small, large = (cost_of_trust(n, epsilon=1.0, delta=1e-6) for n in (10**4, 10**6))
    assert small.central / large.central == pytest.approx(100.0)
    assert small.shuffled / large.shuffled == pytest.approx(100.0, rel=0.05)
    assert small.local / large.local == pytest.approx(10.0)
    assert small.local == pytest.approx((GeneralizedRandomizedResponse(2, 1.0).variance(0.3) / 10**4) ** 0.5)
    for costs in (small, large):
        assert costs.central < costs.shuffled < costs.local
        batch = Shuffled(event.RandomizedResponse(costs.local_epsilon), costs.reports)
        assert 0.99 < accounting.upper(batch, 1e-6, unit=ONE_IN_A_CROWD) <= 1.0
    alone = cost_of_trust(1, epsilon=1.0, delta=1e-6)
    assert alone.local_epsilon == pytest.approx(1.0, rel=2e-3)
    with pytest.raises(InvalidInput, match="delta"):
        cost_of_trust(10, epsilon=1.0, delta=0.0)


def test_the_figure_of_trust() -> None:
    """Catches a figure with a line or a number too few; its words hold the gap."""
    rows = [cost_of_trust(n, epsilon=1.0, delta=1e-6) for n in (100, 10_000)]
    figure = trust(rows, 1.0, 1e-6)
    assert figure.spec is not None
    assert [drawn["x"] for drawn in figure.spec["data"]] == [[100, 10_000]] * 3
    assert "local noise is 71 times the central one, shuffled noise 4.8 times" in figure.alternative
    assert figure.rows[1][0] == "10,000"


def test_the_comparison_is_printed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Catches a command that prints other numbers than the library finds, or a page without its figure."""
    page = tmp_path / "trust.html"
    assert main(["mix", "compare", "--reports", "10000", "--epsilon", "1", "--json", "--plot", str(page)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["reports"] for row in rows] == [100, 1000, 10_000, 100_000, 1_000_000]
    assert rows[2]["shuffled"] == cost_of_trust(10_000, epsilon=1.0, delta=1e-5).shuffled
    assert 'id="trust"' in page.read_text(encoding="utf-8")
    for words in (["--reports", "0", "--epsilon", "1"], ["--reports", "9", "--epsilon", "0"]):
        assert main(["mix", "compare", *words]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 2


def test_a_plan_says_on_what_it_rests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fails when the word of the record, `computational`, stands alone where people look for a sentence."""
    path = written(*plan_of(500), tmp_path)
    assert main(["mix", "plan", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "nobody breaks the encryption of the layers" in shown
    assert "computational\n" not in shown
