"""Every snippet of the README and the documentation runs, and the runner sees the ones that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tools.snippets import SnippetError, blocks, matches, run_page

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


# Lightning's own remarks, on torch's trees and on loaders without workers.
@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.. is deprecated", "ignore:.*not have many workers")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_page_tells_the_truth(page: Path, tmp_path: Path) -> None:
    """Fails when a page shows code that does not run or a command that prints something else."""
    torch.manual_seed(0)  # first weights of networks; noise is never seeded
    text = page.read_text(encoding="utf-8")
    assert run_page(text, page.relative_to(ROOT).as_posix(), tmp_path) == sum(block.runs for block in blocks(text))


def fenced(info: str, *lines: str) -> str:
    return "\n".join(["Some words.", f"```{info}", *lines, "```", "More words.", ""])


GOOD = {
    "a namespace is shared": fenced("python", "x = 1") + fenced("python", "assert x == 1"),
    "a doctest shares it too": fenced("python", ">>> y = 2") + fenced("python", ">>> y + 1", "3"),
    "files are shared": fenced("python", "open('f', 'w').close()") + fenced("console", "$ ls", "f"),
    "output with a gap": fenced("console", "$ echo one; echo two; echo three", "one", "...", "three"),
    "output not shown": fenced("console", "$ echo one", "$ echo two", "two"),
    "a continued command": fenced("console", "$ echo one \\", "    two", "one two"),
    "a command that refuses": fenced("console exit=2", "$ echo refused >&2; exit 2", "refused"),
    "a script line by line": fenced("sh", "echo one > f  # a file", "privet --version", "echo two >> f")
    + fenced("console", "$ cat f", "one", "two"),
    "a script with a variable": fenced("sh", "x=1", "privet --version", "echo $x > f", 'test "$(cat f)" = 1'),
    "a script with a text of two lines": fenced("sh", "printf 'one", "two' > f", 'test "$(wc -w < f)" -eq 2'),
    "a script with lines that go on": fenced("sh", "echo one \\", "    two > f")
    + fenced("console", "$ cat f", "one two"),
    "a script": fenced("sh", "# a comment", "true", "test -d ."),
    "a block that is not run": fenced("python not-run: needs a moon", "1 / 0"),
    "a block for a package that is missing": fenced("python needs=a_package_that_nobody_has", "1 / 0"),
    "a block for a package that is there": fenced("python needs=json", "w = 1") + fenced("python", "assert w == 1"),
    "a block in a list": "- item\n  ```python\n  z = 1\n  ```\n",
    "another language": fenced("text", "$ exit 1") + fenced("", "$ exit 1"),
}
BAD = {
    "an exception": (fenced("python", "x = 1", "1 / 0"), "division by zero"),
    "a doctest that differs": (fenced("python", ">>> 1 + 1", "3"), "Expected:"),
    "an earlier name that is missing": (fenced("python", "missing"), "missing"),
    "a block that has what it needs": (fenced("python needs=json", "1 / 0"), "division by zero"),
    "a command that fails": (fenced("console", "$ exit 3"), "ended with 3, not 0"),
    "a command that should refuse": (fenced("console exit=2", "$ true"), "ended with 0, not 2"),
    "an output that differs": (fenced("console", "$ echo one", "two"), "and it printed:\none"),
    "an output with more": (fenced("console", "$ echo one; echo two", "one"), "and it printed:\none\ntwo"),
    "a script that fails half-way": (fenced("sh", "false", "true"), "ended with 1, not 0"),
    "a script of lines that fails half-way": (
        fenced("sh", "echo one", "privet nosuch", "echo two"),
        "ended with 2, not 0",
    ),
    "a session without a command": (fenced("console", "echo one"), "nothing would be run"),
    "a way out without a reason": (fenced("python not-run", "1 / 0"), "say why"),
    "a language nobody would run": (fenced("bash", "exit 1"), "`bash` would not be run"),
    "a fence left open": ("```python\nx = 1\n", "never closed"),
}


@pytest.mark.parametrize("page", GOOD.values(), ids=GOOD)
def test_a_good_page_passes(page: str, tmp_path: Path) -> None:
    """Fails when the runner objects to a page that tells the truth."""
    run_page(page, "page.md", tmp_path)


@pytest.mark.parametrize(("page", "complaint"), BAD.values(), ids=BAD)
def test_a_bad_page_is_caught(page: str, complaint: str, tmp_path: Path) -> None:
    """Fails when the runner lets a page pass that does not tell the truth."""
    with pytest.raises((SnippetError, ZeroDivisionError, NameError)) as caught:
        run_page(page, "page.md", tmp_path)
    assert complaint in str(caught.value)


def test_a_failing_line_is_found_on_its_page(tmp_path: Path) -> None:
    """Fails when a traceback would point to the block's own numbering and not to the line of the page."""
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(fenced("python", "x = 1", "1 / 0"), "page.md", tmp_path)
    assert caught.traceback[-1].lineno + 1 == 4


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        ("ε = 2.6", "ε = 2.6  \n", True),
        ("ε = ...", "ε = 2.6\nδ = 1e-5", True),
        ("ε = 2.6", "ε = 2.61", False),
        ("2.6", "226", False),
    ],
)
def test_what_is_shown_is_compared_literally(shown: str, output: str, same: bool) -> None:
    """Fails when a dot would match any character, or trailing blanks would matter."""
    assert matches(shown, output) is same
