"""`import privet` is cheap because it leaves the heavy packages alone until they are used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "alembic",
    "cryptography",
    "numpy",
    "pandas",
    "plotly",
    "polars",
    "rich",
    "scipy",
    "sklearn",
    "sqlalchemy",
    "torch",
    "typer",
)


def heavy_after(module: str, directory: Path) -> list[str]:
    """The heavy packages that a fresh interpreter holds after `import module`; `directory` comes first on its path."""
    script = "import sys, json; sys.path.insert(0, {!r}); import {}; print(json.dumps([*sys.modules]))"
    command = [sys.executable, "-c", script.format(str(directory), module)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    return [name for name in HEAVY if name in loaded]


@pytest.mark.parametrize("module", ["privet", "privet.core"])
def test_importing_loads_nothing_heavy(module: str, tmp_path: Path) -> None:
    """Fails when an import at the top of a file pulls a numerical, database or display package into `import privet`."""
    assert heavy_after(module, tmp_path) == []


def test_a_heavy_import_is_seen(tmp_path: Path) -> None:
    """Fails when the measurement itself no longer notices what a module imports."""
    (tmp_path / "planted_heavy.py").write_text("import numpy\n")
    assert heavy_after("planted_heavy", tmp_path) == ["numpy"]
