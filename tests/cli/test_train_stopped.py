"""`privet train` that is stopped: by Ctrl-C or by a kill, and then goes on under the charge that it has paid."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
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
WORDS = "train patients.csv --schema schema.toml --budget clinic --log csv --out run --epochs"


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
    _stopped(signal.SIGKILL, "8", ("--tune", "2"))
    kept = Path("run/.privet/standing.json").read_text()
    assert '"chosen\\"' in kept
    done = privet("train --resume --out run")
    assert done.code == 0, done.err
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
    assert not Path("run/.privet").exists()


def _killed_early(privet: Run) -> None:
    """A run that was charged, and whose process was killed before its first step."""
    patients(Path())
    assert privet("ledger create clinic --epsilon 4 --delta 1e-2").code == 0
    command = [*PROGRAM, *WORDS.split(), "400"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    state, checkpoint = Path("run/.privet/run.json"), Path("run/.privet/checkpoint.pt")
    while not (state.exists() and checkpoint.exists()):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait(60)


def test_a_run_goes_on_with_what_was_charged_and_nothing_else(privet: Run) -> None:
    """Fails when another schema, other data, or an edited state is trained on under the charge of the first; or when a
    refusal throws the run away."""
    _killed_early(privet)
    changes: dict[str, Callable[[str], str]] = {
        "schema.toml": lambda text: text.replace("rows = 600", "rows = 60"),
        "patients.csv": lambda text: text.replace("p1,", "p7,", 1),
        "run/.privet/run.json": lambda text: text.replace('\\"epsilon\\": 1.0', '\\"epsilon\\": 3.5'),
    }
    for name, change in changes.items():
        before = Path(name).read_text()
        assert change(before) != before
        Path(name).write_text(change(before))
        assert "not what" in refused(privet("train --resume --out run"))
        Path(name).write_text(before)
        assert Path("run/.privet/run.json").exists()
    Path("patients.csv").rename("elsewhere.csv")
    refused(privet("train --resume --out run"))
    Path("elsewhere.csv").rename("patients.csv")
    done = privet("train --resume --out run")
    assert done.code == 0, done.err


@pytest.mark.parametrize("method", ["dp-sgd", "output", "input"])
def test_nothing_is_drawn_twice(privet: Run, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a run whose report could not be written draws another model or another score when it goes on."""
    from privet.runs import outputs

    patients(Path())
    assert privet("ledger create clinic --epsilon 4 --delta 1e-2").code == 0
    ledger = "" if method == "input" else "--budget clinic"
    words = f"train patients.csv --schema schema.toml --method {method} --out run {ledger}"
    with monkeypatch.context() as patch:
        patch.setattr(outputs, "write_run", _full)
        assert privet(words).code == 2
    first = Path("run/model.safetensors").read_bytes()
    kept = {path.name: path.read_text() for path in Path("run/.privet/kept").glob("*.json")}
    done = privet("train --resume --out run")
    assert done.code == 0, done.err
    assert Path("run/model.safetensors").read_bytes() == first
    if method != "input":
        score = json.loads(json.loads(kept[f"{method}-score.json"])["value"])
        assert load(Path("run")).scores[0].value.value == score["record"]["value"]
        with Ledger("privet-ledger.db") as book:
            (entry,) = book.show("clinic").entries
            assert entry.state is State.COMMITTED


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def test_of_two_runs_in_one_folder_one_is_refused_before_it_is_charged(privet: Run) -> None:
    """Fails when a second run in a folder where one is at work reserves anything, writes over what the first needs to
    go on, or is told that the first was stopped."""
    patients(Path())
    assert privet("ledger create clinic --epsilon 9 --delta 1e-2").code == 0
    command = [*PROGRAM, *WORDS.split(), "4000"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not (Path("run/.privet/lock").exists() or process.poll() is not None):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert "where another run is at work" in refused(privet(WORDS, "4000 --epsilon 5"))
    assert "where another run is at work" in refused(privet("train --resume --out run"))
    while not (Path("run/log.csv").exists() and Path("run/log.csv").read_text().count("\n") > 3):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    stated = Path("run/.privet/run.json").read_text()
    assert "where another run is at work" in refused(privet(WORDS, "4000 --epsilon 5"))
    assert Path("run/.privet/run.json").read_text() == stated
    process.kill()
    process.wait(60)
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.DRAWING
    assert "where a run was stopped" in refused(privet(WORDS, "4000"))


def test_a_stop_after_the_charge_says_how_to_go_on(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when somebody who stops a run whose charge is spent is told that nothing was done, and pays twice."""
    from privet.training.plan import DPSGD

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    patients(Path())
    assert privet("ledger create clinic --epsilon 2 --delta 1e-2").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(DPSGD, "attach", stop)
        found = privet(WORDS, "2")
    assert found.code == 130
    assert "what was drawn is paid for. Go on: privet train --resume --out run" in found.err
    assert privet("train --resume --out run").code == 0
    with Ledger("privet-ledger.db") as ledger:
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
