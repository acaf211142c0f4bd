"""Records in a notebook: they show themselves, escape what they show, and show nothing that is private."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from privet.core import Bounded, Guarantee, Release, Unit
from privet.core.event import Laplace
from privet.core.random import SeededRng
from privet.core.randomness import Randomness
from privet.ledger import Ledger
from privet.mechanisms import Count, DiscreteGaussianMechanism
from privet.report.notebook import RENDERERS
from privet.report.words import up
from tests.cli.test_page import Elements
from tests.report.test_training_browser import CHROMIUM, Seen, browser
from tests.report.trained import trained

__all__ = ["browser"]

EVIL = "<script>alert('budget')</script><img src=https://example.org/x onerror=alert(1)>"


def released(value: Any = 41, source: str = EVIL, randomness: Randomness = Randomness.SECURE) -> Release[Any]:
    return Release.of(value, Laplace(1.0), unit=Unit(), source=source, randomness=randomness)


def shown(record: Any) -> str:
    return str(record._repr_html_())


def evil_ledger(place: Path) -> Ledger:
    ledger = Ledger(place / "ledger.db")
    ledger.create(EVIL, epsilon=3.0, delta=1e-5)
    ledger.create("clinic", epsilon=1.0, delta=1e-6)
    return ledger


def test_each_record_shows_itself(tmp_path: Path) -> None:
    """Fails when a record has no table of its own, or one without what it promises."""
    guarantee = trained().privacy.guarantee.value
    cells = Elements(shown(guarantee)).text
    assert cells[cells.index("ε at most") + 1] == up(guarantee.epsilon.upper)
    assert "41" in Elements(shown(released())).text
    with evil_ledger(tmp_path) as ledger:
        text = Elements(shown(ledger)).text
    assert "clinic" in text
    assert "ε 1.000, δ 1e-06" in text
    assert set(RENDERERS) == {"Guarantee", "Ledger", "Release"}


def test_nothing_private_is_shown() -> None:
    """Fails when a private value gets into a notebook: by itself, or through a release that was made to hold it."""
    private = Count()([True] * 73)
    assert isinstance(private, Bounded)
    assert not hasattr(private, "_repr_html_")
    for value in (private, (private, 1), [private], {"a": private}):
        assert "73" not in shown(released(value))
    assert "&lt;private int&gt;" in shown(released((private, 1)))
    noisy = DiscreteGaussianMechanism(5.0).release(private, rng=SeededRng(1), source="clinic")
    assert f"<td>{noisy.value}</td>" in shown(noisy)
    assert "protects nobody" in shown(noisy)


def test_large_values_are_named_and_not_printed() -> None:
    """Fails when showing a release prints a whole model, table or text."""
    assert "<td>Linear</td>" in shown(released(nn.Linear(100, 100)))
    assert len(shown(released("x" * 100_000))) < 2000


def test_a_ledger_that_cannot_be_read(tmp_path: Path) -> None:
    """Fails when a notebook shows a traceback, or words of a server, where a ledger does not answer."""
    place = tmp_path / "secret-place.db"
    place.write_bytes(b"no ledger at all" * 100)
    text = shown(Ledger(place))
    assert "cannot be read now" in text
    assert "secret-place" not in text


def test_core_does_not_load_the_report() -> None:
    """Fails when importing the records, or a ledger, loads what draws them."""
    code = "import sys, privet, privet.ledger; print('privet.report' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_ipython_takes_the_tables(tmp_path: Path) -> None:
    """Fails when IPython's own formatter does not find or take what a record shows."""
    formatters = pytest.importorskip("IPython.core.formatters")
    with evil_ledger(tmp_path) as ledger:
        for record in (released(), trained().privacy.guarantee.value, ledger):
            assert formatters.HTMLFormatter()(record).startswith("<table>")
    assert formatters.HTMLFormatter()(Count()([True])) is None


@pytest.mark.skipif(CHROMIUM is None, reason="browserless: no chromium is installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tables_in_a_browser(browser: Any, tmp_path: Path, scheme: str) -> None:
    """Fails when a name becomes markup, runs, or asks for anything; when a table is not one; or when the warning about
    seeded noise cannot be told from the rest."""
    guarantee: Guarantee = trained().privacy.guarantee.value
    with evil_ledger(tmp_path) as ledger:
        parts = [
            shown(each)
            for each in (ledger, guarantee, released(EVIL), released(randomness=Randomness.SEEDED, value=EVIL[:30]))
        ]
    path = tmp_path / "cells.html"
    dark = '<meta name="color-scheme" content="light dark">'
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8>{dark}<title>cells</title>{''.join(parts)}", encoding="utf-8")
    seen = Seen(browser, path, scheme=scheme)
    assert seen.page.locator("table").count() == 4
    assert seen.page.locator("script, img, link, iframe").count() == 0
    assert EVIL in seen.page.locator("table").first.inner_text()
    assert (seen.console, seen.others) == ([], [])
    style = "getComputedStyle(document.querySelector('p strong'))"
    assert seen.page.evaluate(f"{style}.backgroundColor") == "rgb(179, 38, 30)"
    assert seen.page.evaluate(f"{style}.color") == "rgb(255, 255, 255)"
    seen.context.close()
