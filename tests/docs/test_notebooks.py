"""The tutorials' notebooks are those of the pages, store no outputs, and run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.docs_site.notebooks import NAMES, TUTORIALS, render, run
from tools.snippets import SnippetError

PAGE = "# Page\n\nText.\n\n```python\nx = 1\n```\n\nMore.\n\n```console\n$ echo one > f\n$ cat f\none\n```\n"


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_up_to_date(name: str) -> None:
    """Fails when a tutorial was changed and `make notebooks` was not run, or a notebook has outputs."""
    page = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
    assert (TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8") == render(page)


def test_notebooks_are_the_listed_ones() -> None:
    """Fails when a notebook lies in the folder that nobody renders or runs."""
    assert sorted(path.stem for path in TUTORIALS.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs(name: str, tmp_path: Path) -> None:
    """Fails when a cell raises or a command ends with an error."""
    assert run((TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8"), tmp_path) >= 4


def test_notebook_has_text_code_and_commands() -> None:
    """Fails when a part of the page would be missing from its notebook, or output would be stored."""
    cells = json.loads(render(PAGE))["cells"]
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in cells] == [
        ("markdown", "# Page\n\nText."),
        ("code", "x = 1"),
        ("markdown", "More."),
        ("code", "!echo one > f\n!cat f"),
    ]
    assert [cell["outputs"] for cell in cells if cell["cell_type"] == "code"] == [[], []]


def test_notebook_that_fails_is_caught(tmp_path: Path) -> None:
    """Fails when the runner would pass over a cell that raises or a command that fails."""
    assert run(render(PAGE), tmp_path) == 2
    with pytest.raises(ZeroDivisionError):
        run(render(PAGE.replace("x = 1", "1 / 0")), tmp_path)
    with pytest.raises(SnippetError, match="ended with 3"):
        run(render(PAGE.replace("cat f", "exit 3")), tmp_path)
