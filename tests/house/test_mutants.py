"""Every declared mutant can be planted, and the check is shown one bad declaration of each sort that it must reject."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants.declarations import PLANTED, Mutant, check_all, read, read_all
from tools.mutants.results import failures
from tools.mutants.trial import Outcome, Trial, try_mutant

GOOD = Mutant(
    name="core-half-the-noise",
    kind="noise",
    file="src/privet/core/noise.py",
    before="scale = 2.0",
    after="scale = 1.0",
    tests=("tests/core/test_noise.py::test_scale",),
    why="The noise is half of what is charged for.",
)
FILES = {
    "src/privet/__init__.py": "",
    "src/privet/core/__init__.py": "",
    "src/privet/core/noise.py": "def noise():\n    scale = 2.0\n    return scale\n",
    "tests/core/test_noise.py": (
        "from privet.core.noise import noise\n\n\ndef test_scale():\n    assert noise() == 2.0\n\n\n"
        "def test_sign():\n    assert noise() > 0\n"
    ),
}
BAD = {
    "kind": (replace(GOOD, kind="typo"), "`typo` is not a kind"),
    "why": (replace(GOOD, why=" "), "`why` is empty"),
    "room": (replace(GOOD, name="training-half-the-noise"), "must start with the room"),
    "missing file": (replace(GOOD, file="src/privet/core/nothing.py"), "is not a file of src/privet"),
    "file outside": (replace(GOOD, file="tests/core/test_noise.py"), "is not a file of src/privet"),
    "before is missing": (replace(GOOD, before="scale = 3.0"), "occurs 0 times"),
    "before is empty": (replace(GOOD, before=""), "occurs 0 times"),
    "before twice": (replace(GOOD, before="scale"), "occurs 2 times"),
    "after is before": (replace(GOOD, after="scale = 2.0"), "the same as `before`"),
    "syntax": (replace(GOOD, after="scale = ("), "does not compile"),
    "no test": (replace(GOOD, tests=()), "names no test"),
    "missing test file": (replace(GOOD, tests=("tests/core/test_gone.py",)), "does not exist"),
    "cut test": (replace(GOOD, tests=("tests/core/test_noise.py::test_scale[a",)), "is cut off"),
    "missing test": (replace(GOOD, tests=("tests/core/test_noise.py::test_scal",)), "has no test `test_scal`"),
}
UNREADABLE = {
    "unknown key": ('[[mutant]]\nname = "a"\ncolour = "b"', "unknown keys"),
    "missing key": ('[[mutant]]\nname = "a"', "missing keys"),
    "tests as a text": (
        '[[mutant]]\nname="a"\nkind="noise"\nfile="f"\nbefore="b"\nafter="c"\nwhy="w"\ntests="t"',
        "must be a list",
    ),
    "number": (
        '[[mutant]]\nname="a"\nkind="noise"\nfile="f"\nbefore="b"\nafter=1\nwhy="w"\ntests=["t"]',
        "`after` must be a text",
    ),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_every_declared_mutant_can_be_planted() -> None:
    """Fails when a change to the code or the tests leaves a declaration behind that no longer fits."""
    problems = check_all(read_all())
    assert not problems, "\n".join(problems)


def test_every_declaration_is_in_the_file_of_its_room() -> None:
    """Fails when a mutant of one room is declared in the file of another, where nobody looks for it."""
    for path in sorted(PLANTED.glob("*.toml")):
        room = path.stem.partition("-")[0]
        assert {mutant.room for mutant in read(path.read_text(encoding="utf-8"))} == {room}, path.name


def test_a_good_declaration_is_accepted(tree: Path) -> None:
    """Fails when the check complains about a declaration that can be planted."""
    assert check_all([GOOD], tree) == []


@pytest.mark.parametrize("sort", BAD)
def test_a_bad_declaration_is_rejected(sort: str, tree: Path) -> None:
    """Fails when the check has gone blind to this sort of bad declaration."""
    mutant, complaint = BAD[sort]
    problems = check_all([mutant], tree)
    assert len(problems) == 1
    assert complaint in problems[0]


def test_a_name_that_occurs_twice_is_rejected(tree: Path) -> None:
    """Fails when two mutants may share a name."""
    assert check_all([GOOD, GOOD], tree) == ["core-half-the-noise: the name occurs 2 times"]


@pytest.mark.parametrize("sort", UNREADABLE)
def test_an_unreadable_declaration_is_rejected(sort: str) -> None:
    """Fails when a misspelt, missing or mistyped key is taken without a word."""
    text, complaint = UNREADABLE[sort]
    with pytest.raises(ValueError, match=complaint):
        read(text)


@pytest.mark.parametrize(
    ("test", "outcome"),
    [("::test_scale", Outcome.CAUGHT), ("::test_sign", Outcome.SURVIVED), ("::test_gone", Outcome.BROKEN)],
)
def test_the_runner_tells_outcomes_apart_and_restores_the_file(test: str, outcome: Outcome, tree: Path) -> None:
    """Fails when a mutant is not planted, is left in the tree, or a missing test counts as a catch."""
    (tree / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    mutant = replace(GOOD, tests=(f"tests/core/test_noise.py{test}",))
    for _ in range(2):  # the second time with bytecode of the first
        assert try_mutant(mutant, tree, 60.0).outcome is outcome
    assert (tree / GOOD.file).read_text(encoding="utf-8") == FILES[GOOD.file]


def test_the_runner_does_not_take_a_broken_import_for_a_catch(tree: Path) -> None:
    """Fails when a mutant with which the tests cannot even be collected counts as caught."""
    (tree / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    mutant = replace(GOOD, before="def noise():", after="def noises():")
    assert try_mutant(mutant, tree, 60.0).outcome is Outcome.BROKEN


def test_the_runner_counts_a_timeout_as_caught(tree: Path) -> None:
    """Fails when a mutant that makes a test hang would hang the runner or count as a survivor."""
    (tree / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    trial = try_mutant(replace(GOOD, after="while True: pass"), tree, 5.0)
    assert trial.outcome is Outcome.TIMEOUT
    assert trial.outcome.is_caught


def test_a_run_fails_for_survivors_broken_mutants_and_too_few_catches() -> None:
    """Fails when a run passes although a mistake went unnoticed."""
    caught = [Trial(replace(GOOD, name=f"core-{n}"), Outcome.CAUGHT, 1.0, "") for n in range(99)]
    survivor = Trial(GOOD, Outcome.SURVIVED, 1.0, "")
    proven = Trial(replace(GOOD, harmless="The value is not used."), Outcome.SURVIVED, 1.0, "")
    assert failures([*caught, proven]) == []
    assert len(failures([*caught, survivor])) == 1
    assert len(failures([*caught, Trial(GOOD, Outcome.BROKEN, 1.0, "")])) == 1
    assert len(failures([*caught, Trial(proven.mutant, Outcome.CAUGHT, 1.0, "")])) == 1
    assert len(failures([*caught[:9], proven])) == 1
