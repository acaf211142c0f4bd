"""The library keeps the house rules, and each rule is shown a bad file that it must reject."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.house.checks import CHECKS
from tests.house.planted import BAD, GOOD, Planted
from tests.house.source import modules
from tests.house.texts import portable

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "privet"


def plant(root: Path, files: dict[str, str]) -> Path:
    package = root / "privet"
    for place, source in files.items():
        (package / place).parent.mkdir(parents=True, exist_ok=True)
        (package / place).write_text(source, encoding="utf-8")
    return package


@pytest.mark.parametrize("rule", CHECKS)
def test_the_library_keeps_the_rule(rule: str) -> None:
    """Fails when any file of the library breaks the rule."""
    complaints = CHECKS[rule](PACKAGE)
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("rule", CHECKS)
def test_the_rule_accepts_a_good_tree(rule: str, tmp_path: Path) -> None:
    """Fails when a check complains about code that only looks like a breach."""
    assert CHECKS[rule](plant(tmp_path, GOOD)) == []


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.check}: {bad.complaint}")
def test_the_rule_rejects_a_planted_file(bad: Planted, tmp_path: Path) -> None:
    """Fails when a check has gone blind to the breach that it is there for."""
    complaints = CHECKS[bad.check](plant(tmp_path, {bad.place: bad.source, **bad.beside}))
    assert any(bad.complaint in complaint for complaint in complaints), complaints


def test_every_rule_has_a_planted_file() -> None:
    """Fails when somebody adds a check and does not show that it can fail."""
    assert {bad.check for bad in BAD} == set(CHECKS)


@pytest.mark.parametrize("name", [module.name for module in modules(PACKAGE) if not module.name.endswith("__main__")])
def test_every_exported_name_can_be_had(name: str) -> None:
    """Fails when `__all__` promises a name that a lazy `__getattr__` does not deliver."""
    module = importlib.import_module(name)
    assert [missing for missing in module.__all__ if not hasattr(module, missing)] == []


def tracked_files() -> list[Path]:
    listing = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    shown = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in shown.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout: nothing says which files belong to it")
def test_no_file_names_one_machine() -> None:
    """Fails when a path of somebody's disk or the address of a package registry gets into the repository."""
    files = tracked_files()
    assert ROOT / "pyproject.toml" in files
    assert portable(ROOT, files) == []


@pytest.mark.parametrize(
    "line",
    [
        "see /" + "home/ada/data.csv",
        "url = 'sqlite:////" + "tmp/budget.db'",
        "C:" + "\\Users\\ada",
        "pip install --index" + "-url https://example.org",
        "https://files.python" + "hosted.org/x.whl",
    ],
)
def test_a_line_that_names_one_machine_is_rejected(line: str, tmp_path: Path) -> None:
    """Fails when the check no longer sees a machine's path or a registry's address."""
    (tmp_path / "notes.md").write_text(f"A good line, with https://example.org/home/ada in it.\n{line}\n")
    (tmp_path / "picture.bin").write_bytes(b"\xff\xfe\x00")
    complaints = portable(tmp_path, sorted(tmp_path.iterdir()))
    assert len(complaints) == 1
    assert complaints[0].startswith("notes.md:2: names `")


def test_the_package_is_marked_as_typed() -> None:
    """Fails when type checkers of those who use the package would ignore its annotations (PEP 561)."""
    assert (PACKAGE / "py.typed").is_file()


def test_the_decisions_are_numbered_in_order() -> None:
    """Fails when two decisions share a number or one is missing."""
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(found.group(1)) for name in names if (found := re.fullmatch(r"(\d{4})-[a-z0-9-]+\.md", name))]
    assert numbers == list(range(1, len(names) + 1)), names
