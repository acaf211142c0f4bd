"""Notebooks of tutorials: written from the pages, so that the two cannot differ, and run cell by cell.

`python -m tools.docs_site.notebooks` (or `make notebooks`) writes them. Text becomes Markdown cells, Python blocks
become code cells, and each `$ command` becomes a line that begins with `!`. No outputs are stored.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.snippets import Block, blocks, commands, run_command, run_python

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
NAMES = ("first-private-model", "survey", "audit-a-claim")


def render(page: str) -> str:
    """Return the notebook of a tutorial page, as JSON."""
    cells = [_cell(kind, text, number) for number, (kind, text) in enumerate(_parts(page)) if text]
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _parts(page: str) -> Iterator[tuple[str, str]]:
    """Yield a page's text and its blocks in order, as (kind of cell, source)."""
    lines = page.splitlines()
    start = 0
    for block in blocks(page):
        yield "markdown", "\n".join(lines[start : block.line - 2]).strip()
        start = block.line + block.text.count("\n")
        yield "code", _source(block)
    yield "markdown", "\n".join(lines[start:]).strip()


def _source(block: Block) -> str:
    if block.language == "python":
        return block.text.strip()
    if block.language == "console":
        return "\n".join(f"!{command}" for command in commands(block.text))
    raise ValueError(f"line {block.line}: a notebook has no cell for `{block.language}`")


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        # Jupyter asks for ids; these stay the same while a cell does, so that a change of one is a small difference.
        "id": hashlib.sha256(f"{number} {text}".encode()).hexdigest()[:8],
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def run(notebook: str, directory: Path) -> int:
    """Run a notebook's code cells in order, in one namespace and one directory; return how many ran.

    Without Jupyter: a kernel and its client are about twenty packages, and these cells need nothing of them.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    code = [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, start=1):
        text = "".join(cell["source"])
        if text.startswith("!"):
            for command in text.removeprefix("!").split("\n!"):
                run_command(command, directory)
        else:
            run_python(text, namespace, directory, f"<cell {number}>")
    return len(code)


def main() -> int:
    """Write the notebooks."""
    for name in NAMES:
        page = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
        (TUTORIALS / f"{name}.ipynb").write_text(render(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
