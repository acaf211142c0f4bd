"""Both pages of a training run in a real browser: they draw, are quiet, ask for nothing, fit a phone, and print."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privet.report.runs import write_run
from privet.report.training_card import shareable
from privet.report.training_page import report_page
from tests.cli.test_page import specs_in
from tests.report.test_training_page import evil
from tests.report.trained import curves, trained

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="browserless: no chromium is installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    write_run(path, trained())
    (path / "evil.html").write_text(report_page(evil(shareable(trained())), curves()), encoding="utf-8")
    return path


class Seen:
    """A page that was opened, what it said on the console, and what it asked for besides itself."""

    def __init__(self, browser: Any, path: Path, *, width: int = 1200, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.console: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.own = path.as_uri()

    def _refuse(self, dialog: Any) -> None:
        self.console.append(dialog.message)
        dialog.dismiss()

    def drawn(self) -> int:
        self.page.wait_for_selector("html[data-drawn]")
        return int(self.page.evaluate("document.documentElement.dataset.drawn"))

    @property
    def others(self) -> list[str]:
        return [url for url in self.asked if url != self.own and not url.startswith(("data:", "blob:"))]


CUT = """[
    ...[...document.querySelectorAll(".wide > section")].filter((each) => each.scrollWidth > each.clientWidth),
    ...[...document.querySelectorAll("#ladder .ytick text")].filter((each) =>
        each.getBoundingClientRect().left < document.getElementById("ladder").getBoundingClientRect().left),
].map((each) => each.textContent)"""
"""What does not fit into its place, by its text."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 375])
@pytest.mark.parametrize("name", ["report.html", "internal.html", "evil.html"])
def test_the_page_draws_quietly_and_fits(browser: Any, folder: Path, name: str, width: int, scheme: str) -> None:
    """Fails when a figure is not drawn, a script fails, anything outside the file is asked for, the page is wider than
    the screen, a table or an accountant's name is cut off, or the ink is that of the other scheme."""
    seen = Seen(browser, folder / name, width=width, scheme=scheme)
    specs = specs_in((folder / name).read_text(encoding="utf-8"))
    assert seen.drawn() == len(specs) >= 6
    for figure in specs:
        box = seen.page.locator(f"#{figure} svg.main-svg").first.bounding_box()
        assert box["width"] > 200
        assert seen.page.locator(f"#{figure} .trace").count() > 0
    assert (seen.console, seen.others) == ([], [])
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    if name != "evil.html":  # whose endless words are for scrolling
        assert seen.page.evaluate(CUT) == []
    ink = seen.page.evaluate("getComputedStyle(document.querySelector('#epochs .xtick text')).fill")
    assert ink == ("rgb(232, 236, 233)" if scheme == "dark" else "rgb(28, 35, 33)")
    seen.context.close()


@pytest.mark.parametrize(
    "planted",
    [
        "<img src='https://example.org/pixel.png'>",
        "<script>missing()</script>",
        "<div style='width: 500px'>wide</div>",
        "<script>alert(1)</script>",
    ],
)
def test_the_browser_would_tell(browser: Any, tmp_path: Path, planted: str) -> None:
    """Fails when the test above could not see a request, an error or a page that is too wide: here each is planted."""
    path = tmp_path / "planted.html"
    path.write_text(f"<!DOCTYPE html><title>planted</title>{planted}", encoding="utf-8")
    seen = Seen(browser, path, width=375)
    wide = seen.page.evaluate("document.documentElement.scrollWidth") > 375
    assert wide or seen.console or seen.others
    seen.context.close()


def test_every_printed_page_says_internal(browser: Any, folder: Path) -> None:
    """Fails when a sheet of the internal page could be taken for one that may be shared, or the other way round."""
    from pypdf import PdfReader

    for name, marked in (("internal.html", True), ("report.html", False)):
        seen = Seen(browser, folder / name)
        seen.drawn()
        sheets = [sheet.extract_text() for sheet in PdfReader(io.BytesIO(seen.page.pdf(format="A4"))).pages]
        seen.context.close()
        assert len(sheets) > 3
        assert ["INTERNAL" in sheet for sheet in sheets] == [marked] * len(sheets)
        assert any("The numbers" in sheet and "ε at δ = 0.0001" in sheet for sheet in sheets)


def test_the_seeded_warning_is_red(browser: Any, folder: Path) -> None:
    """Fails when the warning that the noise protects nobody is not in the colour of alarm, in either scheme."""
    for scheme, red in (("light", "rgb(179, 38, 30)"), ("dark", "rgb(255, 138, 128)")):
        seen = Seen(browser, folder / "report.html", scheme=scheme)
        assert seen.page.evaluate("getComputedStyle(document.querySelector('.alarm')).color") == red
        seen.context.close()
