"""Running what the documentation shows: fenced blocks of Markdown, shell sessions and Python snippets.

A Markdown page tells the truth here if its ```python blocks run (those with `>>>` also print what they say) and its
```console blocks do what they show: each `$ command` ends with exit code 0, or with the code of `exit=2` in the
fence's first line, and prints the lines below it, where there are any. `...` stands for any text. A ```sh block is a
script that must succeed. `not-run: reason` in the first line is the only way out, but for `needs=package`, by which a
block is left out where an optional package is not installed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

RUNNABLE = ("python", "console", "sh")
# Other names for the same languages would look alike on the page and never be run.
_MISNAMED = frozenset({"py", "python3", "pycon", "bash", "shell", "zsh", "shell-session", "sh-session", "terminal"})
_FENCE = re.compile(r"^(?P<indent>\s*)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_SECONDS = 120
# `privet` and words, in which the shell has nothing to do but to take quotes away.
_ALONE = re.compile(r"privet(?: +(?:[\w./=,:+@%-]|'[^'\n]*')+)+")
# A line of a script that leaves nothing to the next one but files.
_BY_ITSELF = re.compile(r"""(?:privet|printf|echo) (?:[^'"`$&;<(){}\[\]*?!#\\]|'[^']*')*""")


class SnippetError(AssertionError):
    """A snippet did not do what its page says."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the rest of the fence's first line, its text, and the line where that begins."""

    language: str
    options: str
    text: str
    line: int

    @property
    def runs(self) -> bool:
        needed = re.findall(r"\bneeds=(\w+)", self.options)
        return self.language in RUNNABLE and not self.options.startswith("not-run") and all(map(find_spec, needed))

    @property
    def exit_code(self) -> int:
        found = re.search(r"\bexit=(\d+)", self.options)
        return int(found.group(1)) if found else 0


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order; a fence that nobody would run by mistake is an error."""
    lines = iter(enumerate(page.splitlines(), start=1))
    for number, line in lines:
        opened = _FENCE.match(line)
        if not opened:
            continue
        body: list[str] = []
        for _, inner in lines:
            closing = inner.strip()
            if closing.startswith(opened["fence"]) and set(closing) == {opened["fence"][0]}:
                break
            body.append(inner)
        else:
            raise SnippetError(f"line {number}: this fence is never closed")
        language, _, options = opened["info"].strip().partition(" ")
        if language in _MISNAMED:
            raise SnippetError(f"line {number}: `{language}` would not be run; use one of: {', '.join(RUNNABLE)}")
        if options.startswith("not-run") and not re.match(r"not-run: \S", options):
            raise SnippetError(f"line {number}: say why, as in `not-run: needs a network`")
        yield Block(language, options.strip(), textwrap.dedent("\n".join(body) + "\n"), number + 1)


def run_page(page: str, source: str, directory: Path) -> int:
    """Run a page's blocks in order, in one directory and one Python namespace; say how many ran."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for block in blocks(page):
        if not block.runs:
            continue
        ran += 1
        try:
            if block.language == "python":
                run_python(block.text, namespace, directory, source, block.line)
            elif block.language == "console":
                run_console(block.text, directory, block.exit_code)
            else:
                run_script(block.text, directory, block.exit_code)
        except SnippetError as error:
            raise SnippetError(f"{source}:{block.line}: {error}") from None
    return ran


def run_python(
    text: str, namespace: dict[str, object], directory: Path, source: str = "<snippet>", line: int = 1
) -> str:
    """Run Python text and give what it printed; a text with `>>>` is checked as a doctest."""
    printed = io.StringIO()
    with contextlib.chdir(directory), contextlib.redirect_stdout(printed):
        if re.search(r"^\s*>>> ", text, re.MULTILINE):
            _run_doctest(text, namespace, source, line)
        else:
            # Blank lines in front make a traceback name the line of the page.
            exec(compile("\n" * (line - 1) + text, source, "exec"), namespace)
    return printed.getvalue()


def _run_doctest(text: str, namespace: dict[str, object], source: str, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(text, namespace, source, source, line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    if runner.run(test, out=report.append, clear_globs=False).failed:
        raise SnippetError("".join(report))
    namespace.update(test.globs)


def run_console(text: str, directory: Path, exit_code: int = 0) -> str:
    """Run each `$ command` of a shell session, compare what it shows, and give everything that came out."""
    seen = []
    for command, shown in _session(text):
        output = run_command(command, directory, exit_code)
        if shown and not matches(shown, output):
            raise SnippetError(f"$ {command}\nthe page shows:\n{shown}\nand it printed:\n{output}")
        seen.append(output)
    if not seen:
        raise SnippetError("no line begins with `$ `, so nothing would be run")
    return "".join(seen)


def commands(text: str) -> list[str]:
    """Return the commands of a shell session, without what they print."""
    return [command for command, _ in _session(text)]


def _session(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        # A backslash at the end of a line continues the command, as it does in the shell.
        command = re.match(r"(?:.*\\\n)*.*", part)
        shown = part[command.end() :] if command else ""
        yield part[: len(part) - len(shown)].strip(), shown.strip("\n")


def run_script(text: str, directory: Path, exit_code: int = 0) -> None:
    """Run a script, which stops where a line fails; line by line where that is the same, as a line may be run here."""
    lines = [line.partition(" #")[0].strip() for line in text.replace("\\\n", " ").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if exit_code or not all(map(_BY_ITSELF.fullmatch, lines)):
        lines = [f"set -e\n{text}"]
    for line in lines:
        run_command(line, directory, exit_code)


def run_command(command: str, directory: Path, exit_code: int = 0) -> str:
    """Run a shell command beside this interpreter's own programs; give its output and errors, as a terminal would."""
    own = str(Path(sys.executable).parent)
    plain = {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1", "PYTHONUTF8": "1", "HOME": str(directory)}
    if _ALONE.fullmatch(command):
        code, output = _run_here(shlex.split(command)[1:], directory, plain)
        if code != exit_code:
            raise SnippetError(f"$ {command}\nended with {code}, not {exit_code}:\n{output}")
        return output
    path = {"PATH": os.pathsep.join([own, os.environ.get("PATH", "")])}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=os.environ | plain | path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != exit_code:
        raise SnippetError(f"$ {command}\nended with {done.returncode}, not {exit_code}:\n{done.stdout}")
    return done.stdout


def _run_here(words: list[str], directory: Path, environment: dict[str, str]) -> tuple[int, str]:
    """`privet` in this process, which has imported everything; a new one would spend most of its time on that."""
    from privet.cli import main

    raw = io.BytesIO()
    printed = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    before = dict(os.environ)
    with ExitStack() as undo:
        undo.callback(os.environ.update, before)
        undo.callback(os.environ.clear)
        os.environ.update(environment)
        undo.enter_context(contextlib.chdir(directory))
        undo.enter_context(contextlib.redirect_stdout(printed))
        undo.enter_context(contextlib.redirect_stderr(printed))
        code = main(words)
    return code, raw.getvalue().decode("utf-8")


def matches(shown: str, output: str) -> bool:
    """Whether an output is what was shown, where `...` stands for any text and the ends of lines do not matter."""
    pattern = ".*".join(re.escape(part) for part in _trimmed(shown).split("..."))
    return re.fullmatch(pattern, _trimmed(output), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
