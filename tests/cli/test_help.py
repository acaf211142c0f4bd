"""`--help` teaches: every command has an example, and every example is one that the command understands."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator

import click
import pytest
from typer.main import get_command

from privet.cli.app import app
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


@pytest.mark.parametrize("path", PATHS, ids=lambda path: "privet " + " ".join(path))
def test_help_has_an_example_that_can_be_typed(privet: Run, path: tuple[str, ...]) -> None:
    """Fails when a command has no example, or when its example has an option that does not exist or lacks one."""
    done = privet(" ".join(path), "--help")
    assert (done.code, done.err) == (0, "")
    text = inspect.cleandoc(found(path).help or "")
    examples = re.findall(r"\$ privet (.+?)\[/cyan\]", text)
    assert examples
    assert "$ privet" in done.out
    for example in examples:
        words = shlex.split(example)
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
