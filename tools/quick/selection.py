"""Which tests concern the files that have changed."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
_HOUSE = Path("tests/house/test_checks.py")


def changed_files() -> list[Path]:
    """Return the files that differ from the last commit; of a clean tree, those of the last commit."""
    differing = _listed("diff", "--name-only", "HEAD") + _listed("ls-files", "--others", "--exclude-standard")
    names = differing or _listed("diff", "--name-only", "HEAD~1", "HEAD")
    return [Path(name) for name in dict.fromkeys(names) if (ROOT / name).is_file()]


def _listed(*words: str) -> list[str]:
    command = ["git", "-c", "safe.directory=*", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def modules_of(files: Iterable[Path]) -> set[str]:
    """Return the names of the library's modules among the files, such as `privet.ledger.charge`."""
    own = [path for path in files if path.parts[:2] == ("src", "privet") and path.suffix == ".py"]
    return {".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__") for path in own}


def select_tests(files: Iterable[Path], root: Path = ROOT) -> list[Path]:
    """Return the test files that concern the changed files, those that import a changed module first.

    After them come the tests of the same rooms, and the checks of the code itself.
    """
    files = list(files)
    modules = modules_of(files)
    rooms = {name.split(".")[1] for name in modules if "." in name}
    rooms |= {path.parts[1] for path in files if path.parts[0] == "tests" and len(path.parts) > 2}
    own = [path for path in files if path.parts[0] == "tests" and path.name.startswith("test_")]
    every = sorted(path.relative_to(root) for path in (root / "tests").rglob("test_*.py"))
    importing = [path for path in every if imported_by(root / path) & modules]
    nearby = [path for path in every if path.parts[1] in rooms]
    return list(dict.fromkeys([*own, *importing, *nearby, _HOUSE]))


def imported_by(path: Path) -> set[str]:
    """Return the modules that a file names in its imports, and what it takes from them as modules."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names
