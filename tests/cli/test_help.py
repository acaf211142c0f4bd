"""`--help` teaches: every command has an example, and every example is one that the command understands."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from typer.main import get_command

from privet.cli.app import app
from privet.cli.help_page import is_example
from tests.cli.conftest import Run

ROOT = get_command(app)


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every command, groups among them."""
    yield path
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from commands(below, (*path, name))


def found(path: tuple[str, ...]) -> click.Command:
    command = ROOT
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


PATHS = list(commands(ROOT))


def examples(path: tuple[str, ...]) -> list[str]:
    return [text for text in (found(path).help or "").split("\n\n") if is_example(text)]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: "privet " + " ".join(path))
def test_help_has_an_example_that_can_be_typed(privet: Run, path: tuple[str, ...]) -> None:
    """Fails when a command has no example, or when its example has an option that does not exist or lacks one."""
    done = privet(" ".join(path), "--help")
    assert (done.code, done.err) == (0, "")
    assert examples(path)
    for example in examples(path):
        words = shlex.split(example)[1:]
        target = next(
            candidate for candidate in sorted(PATHS, key=len, reverse=True) if [*candidate] == words[: len(candidate)]
        )
        assert target[: len(path)] == path
        found(target).make_context("privet", words[len(target) :])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: "privet " + " ".join(path))
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    """Fails when an option has no words of help."""
    command = found(path)
    assert [
        name for parameter in command.params if not getattr(parameter, "help", None) for name in parameter.opts
    ] == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="no shell to paste into")
@pytest.mark.parametrize("columns", [200, 80, 60, 40])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: "privet " + " ".join(path))
def test_examples_can_be_pasted_as_they_are_shown(
    privet: Run, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...], columns: int
) -> None:
    """Fails when a narrow terminal breaks an example where a shell would not read on: into two commands, inside a word,
    or after a backslash with a blank behind it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = privet(" ".join(path), "--help").out
    blocks = re.findall(r"^  privet .*\n(?:      .*\n)*", shown, re.MULTILINE)
    assert len(blocks) == len(examples(path))
    for block, example in zip(blocks, examples(path), strict=True):
        script = f'privet() {{ printf "%s\\n" "$@"; }}\n{block}'
        done = subprocess.run(["bash", "-c", script], capture_output=True, encoding="utf-8")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == shlex.split(example)[1:]
        if columns >= 60:
            assert all(len(line) <= columns for line in block.splitlines())


@pytest.mark.parametrize("columns", [200, 80, 60, 40])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: "privet " + " ".join(path))
def test_no_name_and_no_choice_is_broken(
    privet: Run, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...], columns: int
) -> None:
    """Fails when a narrow terminal cuts an option, a choice, a variable or a default in two, or leaves its end out."""
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = privet(" ".join(path), "--help").out
    assert all(len(line) <= columns for line in shown.splitlines() if line.startswith("│"))
    words = set(re.split(r"[\s,.:;\[\]│]+", shown))
    command = found(path)
    for option in command.params:
        if isinstance(option, click.Option):
            choices = option.type.choices if isinstance(option.type, click.Choice) else []
            variables = [option.envvar] if isinstance(option.envvar, str) else []
            assert {*option.opts, *map(str, choices), *variables} <= words
    if isinstance(command, click.Group):
        assert set(command.commands) <= words


def test_what_is_required_and_what_is_usual_is_said(privet: Run) -> None:
    """Fails when the help hides what must be given, what is taken otherwise, or where else it may come from."""
    shown = " ".join(privet("ledger create --help").out.replace("│", " ").split())
    assert "The δ of everything together: far below 1/n. [required]" in shown
    assert "What may change for one person. One of: add/remove, zero-out, replace. [default: add/remove]" in shown
    assert "[variable: PRIVET_LEDGER] [default: privet-ledger.db]" in shown
    assert "--wait SECONDS How long to wait for other processes. [default: 60]" in shown
    assert "--help, -h" in shown
    assert "NAME The data set that the budget is for. [required]" in shown


def test_option_url_is_refused_with_its_new_name(privet: Run) -> None:
    """Fails when the former name of --ledger is taken, or is refused without a word of the new one."""
    words = "ledger create clinic --epsilon 1 --delta 1e-6"
    for both in ("--url b.db", "--ledger a.db --url b.db", "--url=b.db --ledger=a.db"):
        done = privet(words, both)
        assert (done.code, done.out) == (2, "")
        assert done.err == "privet: --url is called --ledger now; the option that names a budget is --budget\n"
    assert list(Path.cwd().iterdir()) == []


def test_nothing_typed_gives_the_help(privet: Run) -> None:
    """Fails when a newcomer who types only the program's name, or only a group's, learns nothing."""
    for words in ("", "ledger"):
        done = privet(words)
        assert (done.code, done.err) == (0, "")
        assert f"Usage: privet {words}".strip() in done.out


def test_the_version(privet: Run) -> None:
    """Fails when --version is not understood."""
    done = privet("--version")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"privet \d+\.\d+\S*\n|privet, not installed as a package\n", done.out)
