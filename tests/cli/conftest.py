"""Running `privet` in this process, as the program does it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from privet.cli import main
from tests.cli.training import patients


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code and both of its outputs."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def privet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """`privet("account --delta 1e-5", …)`, in an empty directory and on a terminal of 120 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("PRIVET_LEDGER", "PRIVET_LEDGER_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)

    def run(*lines: str) -> Done:
        capsys.readouterr()
        code = main([word for line in lines for word in shlex.split(line)])
        shown = capsys.readouterr()
        return Done(code, shown.out, shown.err)

    return run


@pytest.fixture
def clinic(privet: Run) -> Run:
    """`privet`, in a folder with private rows, public ones and test rows."""
    patients(Path())
    for name in ("public", "test"):
        patients(Path(name), 200, extra="x,50,north,no\n" * (1 + len(name)))
    return privet
