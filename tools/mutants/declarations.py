"""Declarations of mutants: read them from TOML and check that each can be planted."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

__all__ = ["KINDS", "PLANTED", "ROOT", "Mutant", "check", "check_all", "read", "read_all"]

ROOT = Path(__file__).parents[2]
PLANTED = ROOT / "tools" / "mutants" / "planted"
KINDS = (
    "noise",
    "clip",
    "count",
    "divisor",
    "sampler",
    "adjacency",
    "charging",
    "conversion",
    "reading",
    "rounding",
)


@dataclass(frozen=True)
class Mutant:
    """One mistake: the text that it changes in one file, and the tests of which at least one must fail."""

    name: str
    kind: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    why: str
    """One sentence: which guarantee this breaks."""
    harmless: str = ""
    """Only for survivors: the proof that the change cannot break a guarantee."""

    @property
    def room(self) -> str:
        """The directory of src/privet that the file is in."""
        return Path(self.file).parts[2]

    def apply(self, text: str) -> str:
        """Return the text of the file with the mistake in it."""
        return text.replace(self.before, self.after, 1)


def read(text: str) -> list[Mutant]:
    """Read the declarations of one TOML text.

    Raises:
        ValueError: A declaration lacks a key, has an unknown one, or a value of the wrong type.
    """
    return [_mutant(entry) for entry in tomllib.loads(text).get("mutant", [])]


def read_all(directory: Path = PLANTED) -> list[Mutant]:
    """Read all declarations of a directory, in the order of the file names."""
    return [mutant for path in sorted(directory.glob("*.toml")) for mutant in read(path.read_text(encoding="utf-8"))]


def _mutant(entry: dict[str, object]) -> Mutant:
    name = entry.get("name")
    known = {field.name for field in fields(Mutant)}
    if wrong := sorted(set(entry) - known):
        raise ValueError(f"mutant {name!r}: unknown keys {wrong}")
    if missing := sorted(known - {"harmless"} - set(entry)):
        raise ValueError(f"mutant {name!r}: missing keys {missing}")
    tests = entry.pop("tests")
    if not (isinstance(tests, list) and all(isinstance(test, str) for test in tests)):
        raise ValueError(f"mutant {name!r}: `tests` must be a list of texts")
    texts: dict[str, str] = {}
    for key, value in entry.items():
        if not isinstance(value, str):
            raise ValueError(f"mutant {name!r}: `{key}` must be a text")
        texts[key] = value
    return Mutant(tests=tuple(tests), **texts)


def check_all(mutants: list[Mutant], root: Path = ROOT) -> list[str]:
    """Return what is wrong with the declarations, the uniqueness of their names included."""
    counts = Counter(mutant.name for mutant in mutants)
    problems = [f"{name}: the name occurs {count} times" for name, count in counts.items() if count > 1]
    return problems + [f"{mutant.name}: {problem}" for mutant in mutants for problem in check(mutant, root)]


def check(mutant: Mutant, root: Path = ROOT) -> Iterator[str]:
    """Yield what keeps one mutant from being planted and tested."""
    if mutant.kind not in KINDS:
        yield f"`{mutant.kind}` is not a kind; the kinds are {', '.join(KINDS)}"
    if not mutant.why.strip():
        yield "`why` is empty"
    yield from _check_change(mutant, root)
    if not mutant.tests:
        yield "names no test"
    for test in mutant.tests:
        yield from _check_test(test, root)


def _check_change(mutant: Mutant, root: Path) -> Iterator[str]:
    path = root / mutant.file
    if not (mutant.file.startswith("src/privet/") and path.suffix != ".c" and path.is_file()):
        yield f"{mutant.file} is not a file of src/privet that runs without being compiled first"
        return
    if len(Path(mutant.file).parts) > 3 and not mutant.name.startswith(f"{mutant.room}-"):
        yield f"the name must start with the room, `{mutant.room}-`"
    text = path.read_text(encoding="utf-8")
    if (occurrences := text.count(mutant.before) if mutant.before else 0) != 1:
        yield f"`before` occurs {occurrences} times in {mutant.file}, not once"
        return
    if mutant.before == mutant.after:
        yield "`after` is the same as `before`"
    elif path.suffix == ".py":
        try:
            compile(mutant.apply(text), mutant.file, "exec", dont_inherit=True)
        except SyntaxError as error:
            yield f"the changed file does not compile: {error}"


def _check_test(test: str, root: Path) -> Iterator[str]:
    file, *names = test.split("::")
    if "[" in test and not (test.endswith("]") and test.count("[") == test.count("]")):
        yield f"{test} is cut off"
    path = root / file
    if not (path.suffix == ".py" and path.is_file()):
        yield f"{file} does not exist"
        return
    text = path.read_text(encoding="utf-8")
    for name in names:
        plain = name.partition("[")[0]
        if re.search(rf"^\s*(?:async )?(?:def|class) {re.escape(plain)}\b", text, re.MULTILINE) is None:
            yield f"{file} has no test `{plain}`"
