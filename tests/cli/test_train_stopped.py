"""`privet train` that is stopped: by Ctrl-C or by a kill, and then goes on under the charge that it has paid."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from privet.ledger import Ledger, State
from privet.report import load
from tests.cli.conftest import Run
from tests.cli.test_errors import refused
from tests.cli.test_process import ENVIRONMENT, PROGRAM
from tests.cli.training import patients

pytest.importorskip("torch")
pytest.importorskip("polars")
WORDS = "train patients.csv --schema schema.toml --ledger clinic --log csv --out run --epochs"


def _stopped(with_signal: signal.Signals, epochs: str, extra: tuple[str, ...] = ()) -> int:
    """Begin a long run in a process of its own, and stop it once its first log line is there."""
    command = [*PROGRAM, *WORDS.split(), epochs, *extra]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + 120
    seen = Path("run/.privet/standing.json") if extra else Path("run/log.csv")
    while not (seen.exists() and (extra or seen.read_text().count("\n") > 3)):
        assert process.poll() is None, process.stderr
        assert time.monotonic() < end
        time.sleep(0.05)
    os.kill(process.pid, with_signal)
    process.wait(60)
    if process.stderr is not None:
        process.stderr.close()
    return process.returncode


@pytest.mark.parametrize(("with_signal", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_that_was_stopped_goes_on(privet: Run, with_signal: signal.Signals, code: int) -> None:
    """Fails when a stop loses the run, hides its charge, charges it twice, or lets it make more steps than planned."""
    patients(Path())
    assert privet("ledger create clinic --epsilon 2 --delta 1e-2").code == 0
    assert _stopped(with_signal, "400") == code
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.DRAWING
    assert not Path("run/card.json").exists()
    assert "where a run was stopped" in refused(privet(WORDS, "400"))
    assert "is not what the run was begun with" in refused(privet("train --resume --out run --epsilon 2"))
    done = privet("train --resume --out run")
    assert done.code == 0, done.err
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
    card = load(Path("run"))
    assert card.privacy.event.value == entry.event
    steps = [int(line.split(",")[0]) for line in Path("run/log.csv").read_text().splitlines()[1:]]
    assert steps == sorted(set(steps))
    assert max(steps) <= 1600
    assert "is complete" in refused(privet("train --resume --out run"))


def test_tuning_that_was_killed_goes_on(privet: Run) -> None:
    """Fails when a kill draws the number of runs anew: that would be another law than the one that was priced."""
    patients(Path())
    assert privet("ledger create clinic --epsilon 2 --delta 1e-2").code == 0
    _stopped(signal.SIGKILL, "40", ("--tune", "4"))
    kept = Path("run/.privet/standing.json").read_text()
    assert '"chosen\\"' in kept
    done = privet("train --resume --out run")
    assert done.code == 0, done.err
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
    assert not Path("run/.privet").exists()
