"""The page in a real browser, where there is one: it draws, says nothing on the console, and asks for nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.test_page import made

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="browserless: no chromium is installed")


OWN = re.compile(r"(^|\.)(google|googleapis|gvt1|gstatic|chromium)\.\w+$")
"""Hosts that the browser itself asks for updates and the time."""


@dataclass(frozen=True)
class Seen:
    """A page's elements after its scripts have run, what the console said, and the hosts that were asked."""

    elements: str
    console: list[str]
    hosts: set[str]


def opened(page: Path, directory: Path, *, dark: bool = False) -> Seen:
    """Open a page in a browser for which no host can be reached."""
    log = directory / "requests.json"
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        f"--log-net-log={log}",
        f"--user-data-dir={directory / 'profile'}",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--window-size=1200,2000",
        "--virtual-time-budget=10000",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--enable-logging=stderr",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    asked = set(re.findall(r'"url":"(?:https?|wss?)://([^/":]+)', log.read_text(encoding="utf-8", errors="replace")))
    return Seen(done.stdout, console, {host for host in asked if not OWN.search(host)})


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_draws_all_figures_quietly(dark: bool, tmp_path: Path) -> None:
    """Fails when a script of the page fails, a figure is not drawn, or the page asks for anything outside its file."""
    path = tmp_path / "page.html"
    path.write_text(made("poisson")[2], encoding="utf-8")
    seen = opened(path, tmp_path, dark=dark)
    elements = seen.elements
    assert (seen.console, seen.hosts) == ([], set())
    assert 'data-drawn="5"' in elements
    assert elements.count('class="main-svg"') >= 5
    # The ink of the scheme, as plotly.js writes it on its labels.
    assert ("fill: rgb(232, 236, 233)" in elements) is dark
    assert ("fill: rgb(28, 35, 33)" in elements) is not dark


def test_a_page_without_figures_is_quiet_too(tmp_path: Path) -> None:
    """Fails when a run without any guarantee gives a page whose script stumbles over what is not there."""
    path = tmp_path / "page.html"
    path.write_text(made("no noise")[2], encoding="utf-8")
    seen = opened(path, tmp_path)
    assert (seen.console, seen.hosts) == ([], set())
    assert "Gaussian without noise" in seen.elements


@pytest.mark.parametrize(
    "planted",
    [
        '<script src="https://cdn.example.org/plotly.js"></script>',
        '<img src="https://example.org/pixel.png">',
        "<script>missing()</script>",
    ],
    ids=["a script from elsewhere", "a picture from elsewhere", "a script that fails"],
)
def test_the_browser_would_tell(planted: str, tmp_path: Path) -> None:
    """Fails when the two tests above could not see a request or an error: here each is planted, and must be seen."""
    path = tmp_path / "planted.html"
    path.write_text(f"<!DOCTYPE html><title>planted</title>{planted}", encoding="utf-8")
    seen = opened(path, tmp_path)
    assert seen.hosts or seen.console
