"""The documentation site builds without a warning, and what is wrong with a page or a public name is a warning."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
needs_mkdocs = pytest.mark.skipif(
    find_spec("mkdocs") is None or find_spec("mkdocstrings_handlers") is None, reason="mkdocs is not installed"
)

GOOD = {
    "docs/index.md": "# Home\n\nSee [the page](page.md#a-heading) and [the license](../LICENSE).\n",
    "docs/page.md": "# Page\n\n## A heading\n\n```python not-run: an example\nprint(1)\n```\n",
    "docs/api.md": "# API\n\n::: privet\n\n::: privet.core\n",
    "src/privet/__init__.py": '"""Package."""\n\nfrom privet.core import add\n\n__all__ = ["add"]\n',
    "src/privet/core/__init__.py": '"""Room."""\n\nfrom privet.core.add import add\n\n__all__ = ["add"]\n',
    "src/privet/core/add.py": '"""Mod."""\n\ndef add(x: int) -> int:\n    """Add.\n\n    >>> add(1)\n    2\n    """\n',
    "LICENSE": "Free.\n",
    "nav": "nav:\n  - index.md\n  - page.md\n  - api.md\n",
}
_ROOM = '"""Room."""\n\nfrom privet.core.add import add, bare\n\n__all__ = ["add", "bare"]\n'
FAULTS = {
    "a link to no page": ({"docs/index.md": "[x](absent.md)\n"}, "'absent.md'"),
    "a link to no heading": ({"docs/index.md": "[x](page.md#absent)\n"}, "'page.md#absent'"),
    "a link to no file": ({"docs/index.md": "[x](../absent.txt)\n"}, "links to ../absent.txt, which does not exist"),
    "a script from a CDN": (
        {"docs/index.md": '<script src="https://example.org/x.js"></script>\n'},
        "loads <script src=",
    ),
    "a page outside of the navigation": ({"docs/more.md": "# More\n"}, "not included in the"),
    "a page that is gone": ({"nav": GOOD["nav"] + "  - gone.md\n"}, "'gone.md'"),
    "a public name without a docstring": (
        {
            "src/privet/core/__init__.py": _ROOM,
            "src/privet/core/add.py": GOOD["src/privet/core/add.py"] + "def bare(): ...",
        },
        "privet.core.bare is public",
    ),
    "a room without a page": (
        {"src/privet/other/__init__.py": '"""Room."""\n\n__all__ = ["x"]\n\nx = 1\n"""A number."""\n'},
        "privet.other.x is public",
    ),
}


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a source tree as `make docs` does: not quietly, for then warnings would not count."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write a small source tree with the real configuration, but for the navigation, and the real hooks."""
    shutil.copytree(ROOT / "tools" / "docs_site", root / "tools" / "docs_site")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (root / "mkdocs.yml").write_text(CONFIG[: CONFIG.index("\nnav:")] + "\n" + files["nav"], encoding="utf-8")
    return root


@needs_mkdocs
def test_site_builds_without_warnings(tmp_path: Path) -> None:
    """Fails on a broken link or anchor, a page outside of the navigation, an undocumented public name, a CDN."""
    built = build(ROOT, tmp_path / "site")
    assert built.returncode == 0, built.stdout
    assert (tmp_path / "site" / "reference" / "api" / "core.html").is_file()


@needs_mkdocs
def test_site_with_good_pages_passes(tmp_path: Path) -> None:
    """Fails when the checks complain about a tree in which nothing is wrong, or a page is not adapted to the site."""
    built = build(plant(tmp_path, GOOD), tmp_path / "site")
    assert built.returncode == 0, built.stdout
    assert "not-run" not in (tmp_path / "site" / "page.html").read_text(encoding="utf-8")
    reference = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    assert 'id="privet.core.add"' in reference  # the function, although its module has the same name
    assert '<span class="gp">&gt;&gt;&gt; ' in reference  # a doctest is code, and no quotation


@needs_mkdocs
@pytest.mark.parametrize("fault", FAULTS)
def test_site_build_fails_on_planted_fault(fault: str, tmp_path: Path) -> None:
    """Fails when this fault alone would no longer fail the build."""
    files, complaint = FAULTS[fault]
    built = build(plant(tmp_path, GOOD | files), tmp_path / "site")
    assert built.returncode != 0, built.stdout
    assert any("WARNING" in line and complaint in line for line in built.stdout.splitlines()), built.stdout


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a Markdown page that lead nowhere."""
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [link for link in found if "://" not in link and not (page.parent / link).exists()]


PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("docs/**/*.md")]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_links_lead_to_files(page: Path) -> None:
    """Fails when a page of the repository links to a file that is not there, whether or not MkDocs is installed."""
    assert broken_links(page) == []


def test_broken_link_in_a_page_is_seen(tmp_path: Path) -> None:
    """Fails when the check above has gone blind."""
    page = tmp_path / "page.md"
    page.write_text("[a](page.md) [b](absent.md#x) [c](https://example.org) [d](#x)\n", encoding="utf-8")
    assert broken_links(page) == ["absent.md"]


def test_every_page_is_in_the_navigation() -> None:
    """Fails when a page is missing from `mkdocs.yml`, or the navigation names one that is gone, without MkDocs, too."""
    listed = re.findall(r"[\w/-]+\.md", CONFIG[CONFIG.index("\nnav:") :])
    pages = sorted(path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md"))
    assert sorted(listed) == pages


def test_navigation_is_in_order() -> None:
    """Fails when a section is missing, or readers would meet decisions before tutorials."""
    sections = re.findall(r"^  - ([A-Z][\w-]+):", CONFIG[CONFIG.index("\nnav:") :], re.MULTILINE)
    assert sections == ["Overview", "Tutorials", "How-to", "Reference", "Explanation", "Decisions"]
