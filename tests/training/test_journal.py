"""The journal: no step of a plan is made twice, whoever goes on, and however the run before it ended."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from privet.core.errors import LedgerError
from privet.ledger import Ledger, State
from privet.training import DPSGD, BatchSampling, Run, RunError, journal
from privet.training.journal import CheckpointError, Journal
from tests.training.resumable import DATA, PLAN, ROWS, attached, crashed, go, noises, resumed, saved


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.pt"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger(tmp_path / "ledger.db")
    book.create("clinic", epsilon=30.0, delta=1e-5)
    book.create("other clinic", epsilon=30.0, delta=1e-5)
    return book


# --- once


def test_two_runs_cannot_go_on_from_one_checkpoint(path: Path) -> None:
    """While one is alive. Catches two resumed runs that both make the plan's last steps."""
    first = go(attached(), 3)
    first.save(path)
    with pytest.raises(CheckpointError, match="alive"):
        resumed(path)
    first.close()
    second = go(resumed(path), 1)
    with pytest.raises(CheckpointError, match="two runs must not go on from one checkpoint"):
        resumed(path)
    del second  # a run that nobody holds any more is not alive
    assert resumed(path).steps == 4


def test_where_files_cannot_be_locked_the_older_run_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a journal that relies on locks alone: on some network disks there are none."""
    monkeypatch.setattr(journal, "locked", lambda file: True)
    first = go(attached(), 3)
    first.save(path)
    go(first, 2)
    second = resumed(path)
    assert second.steps == 5
    with pytest.raises(CheckpointError, match="resumed elsewhere"):
        go(first, 1)
    with pytest.raises(CheckpointError, match="resumed elsewhere"):
        first.save(path)
    assert first.steps == 5
    assert go(second).steps == 12


def test_lives_share_the_plans_steps(path: Path) -> None:
    """Going back to an older checkpoint, again and again, makes no step of the plan twice. Catches a count that is
    taken from the checkpoint alone.
    """
    made = 4
    saved(path, steps=made)
    for life in range(2, 6):
        run = resumed(path)
        assert run.steps == made
        made += len(noises(run, 2))
        assert run._store._journal is not None
        assert run._store._journal.life == life
        run.close()
    last = resumed(path)
    assert (last.steps, list(last.batches())) == (12, [])
    assert last.release().guarantee == PLAN.guarantee(1e-5)


def test_a_released_run_does_not_go_on(path: Path, ledger: Ledger) -> None:
    """Catches steps after the bill was closed, with a ledger and without."""
    run = go(attached(charge=ledger.budget("clinic")), 2)
    run.save(path)
    run.release()
    with pytest.raises(RunError, match="ended"):
        run.save(path)
    with pytest.raises(CheckpointError, match="was released"):
        resumed(path, charge=ledger.budget("clinic"))
    lines = Path(f"{path}.journal").read_bytes().splitlines(keepends=True)
    Path(f"{path}.journal").write_bytes(b"".join(lines[:-1]))  # as if it had died before its last line
    with pytest.raises(LedgerError, match="committed"):
        resumed(path, charge=ledger.budget("clinic"))


def test_a_run_that_was_closed_before_its_first_step_is_given_back(path: Path, ledger: Ledger) -> None:
    """Catches a reservation that stays though nothing was drawn, and one that is given back though something was."""
    run = attached(charge=ledger.budget("clinic"))
    run.save(path)
    crashed(run)
    again = resumed(path, charge=ledger.budget("clinic"))
    assert ledger.show("clinic").entries[0].state is State.RESERVED
    go(again, 1)
    assert ledger.show("clinic").entries[0].state is State.DRAWING
    again.close()
    assert ledger.show("clinic").entries[0].state is State.DRAWING
    other = attached(charge=ledger.budget("other clinic"))
    other.save(path.with_name("other.pt"))
    other.close()
    assert ledger.show("other clinic").entries[0].state is State.ABORTED


# --- the journal


def test_a_new_order_is_written_down_within_a_block(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps written ahead may reach into the next epoch, whose order does not exist yet. Catches an order that is used
    before the disk has it, and a line about it that takes back what was written ahead.
    """
    monkeypatch.setattr(Journal, "_ahead", lambda self, number: 50)
    book = Journal.create(path, run="a", total=1000, steps=0, sampler={"keys": {}}, replace=False)
    book.begin(0, {"keys": {}})
    book.begin(3, {"keys": {}})
    length = path.stat().st_size
    book.begin(4, {"keys": {"1": "ab"}})
    assert path.stat().st_size > length
    book.close()
    again = Journal.open(path, run="a", total=1000, head=book.head)
    assert (again.steps, again.sampler) == (50 + 4, {"keys": {"1": "ab"}})
    again.close()


def test_steps_are_written_down_before_they_begin(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches noise that is drawn before the disk knows of its step, and a step that is made although it could not be
    written down; when there is room again, the run goes on.
    """
    run = go(attached(), 2)
    run.save(path)
    known: list[int] = []
    real = run._step.begin

    def begin() -> None:
        known.append(json.loads(Path(f"{path}.journal").read_text().splitlines()[-1].rpartition(" ")[0])["steps"])
        real()

    monkeypatch.setattr(run._step, "begin", begin)
    go(run, 3)
    assert known == [3, 4, 5]

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match="No space left on device"):
            go(run, 1)
    assert len(known) == run.steps - 2 == 3
    go(run, 1)
    assert len(known) == run.steps - 2 == 4
    crashed(run)
    assert resumed(path).steps == 6


def test_steps_written_ahead_are_lost_in_a_crash_and_not_otherwise(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes as long as ten steps: steps are written down in blocks of one in a hundred of the plan's.
    Catches a block that a crash gives back, one that grows without bound, and one that a normal stop loses.
    """
    clock = [0.0]
    real = os.fsync

    def slow(number: int) -> None:
        clock[0] += 10.0
        real(number)

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(os, "fsync", slow)
    plan = replace(PLAN, steps=400)
    run = attached(plan)
    run.save(path)
    written = []
    for x, _ in run.batches():
        clock[0] += 1.0
        if run.step(0.0 * run.model(x).sum(1)):
            assert run._store._journal is not None
            written.append(run._store._journal.steps)
            if run.steps == 11:
                break
    assert written == [1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13]
    run.save(path)  # normal: 11 is 11
    run.close()
    run = resumed(path, plan)
    assert run.steps == 11
    noises(run, 4)
    reached, ahead = run.steps, run._store._journal.steps  # type: ignore[union-attr]
    assert reached < ahead <= reached + 4
    crashed(run)
    assert resumed(path, plan).steps == ahead


def test_a_disk_that_is_fast_enough_loses_nothing(path: Path) -> None:
    """Catches blocks in short plans, of which a step is a large part."""
    run = attached()
    run.save(path)
    go(run, 7)
    crashed(run)
    assert resumed(path).steps == 7


def test_a_torn_line_stands_for_no_step(path: Path) -> None:
    """The power fails while a line is written: its steps had not begun. Catches a run that is lost by that, a torn line
    that is continued in the middle, and the acceptance of a whole line that is wrong.
    """
    saved(path)
    place = Path(f"{path}.journal")
    for tail in (b'{"life": 1, "ste', b"\0" * 50, b'{"life": 1, "steps": 12} 0123456789abcdef0123456789abcdef'):
        with place.open("ab") as file:
            file.write(tail)
        run = resumed(path)
        assert run.steps == 5
        run.close()
    assert place.read_bytes().endswith(b"\n")
    with place.open("ab") as file:
        file.write(b'{"life": 1, "steps": 2} 0123456789abcdef0123456789abcdef\n')
    with pytest.raises(CheckpointError, match="changed in line"):
        resumed(path)


def test_a_wrong_journal_is_refused(path: Path, tmp_path: Path) -> None:
    """Catches a checkpoint that is resumed with no journal, another run's, an older copy, or an edited one: the steps
    that were made since would be free.
    """
    place = Path(f"{path}.journal")
    run = go(attached(), 3)
    run.save(path)
    older = place.read_bytes()
    go(run, 3).save(path)
    run.close()
    newest = place.read_bytes()
    place.unlink()
    with pytest.raises(CheckpointError, match="missing, and it alone knows how many steps were begun"):
        resumed(path)
    place.write_bytes(older)
    with pytest.raises(CheckpointError, match="older than the checkpoint"):
        resumed(path)
    place.write_bytes(newest.replace(b'"steps": 6', b'"steps": 1'))
    with pytest.raises(CheckpointError, match="changed in line"):
        resumed(path)
    place.write_bytes(b"something else\n")
    with pytest.raises(CheckpointError, match="not one that this version can read"):
        resumed(path)
    saved(tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="another run"):
        resumed(path, journal=tmp_path / "other.pt.journal")
    moved = tmp_path / "moved"
    moved.write_bytes(newest)
    place.unlink()
    assert resumed(path, journal=moved).steps == 6


def test_a_journal_that_disappears_ends_the_run(path: Path) -> None:
    """Catches steps that are written down where nobody will ever look."""
    run = go(attached(), 3)
    run.save(path)
    place = Path(f"{path}.journal")
    shutil.copy(place, path.with_name("copy"))
    place.unlink()
    with pytest.raises(CheckpointError, match="moved, deleted or replaced"):
        go(run, 1)
    shutil.copy(path.with_name("copy"), place)
    with pytest.raises(CheckpointError, match="moved, deleted or replaced"):
        go(run, 1)
    assert run.steps == 3


def test_all_checkpoints_of_a_run_share_one_journal(tmp_path: Path) -> None:
    """Catches an older checkpoint that knows nothing of the steps since, and a directory that cannot be moved."""
    run = attached(journal=tmp_path / "runs.journal")
    for number in range(1, 4):
        go(run, 2).save(tmp_path / f"{number}.pt")
    run.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["1.pt", "2.pt", "3.pt", "runs.journal"]
    moved = tmp_path.with_name("moved")
    tmp_path.rename(moved)
    assert resumed(moved / "1.pt").steps == 6
    moved.rename(tmp_path)


def test_a_journal_is_not_written_over(path: Path, tmp_path: Path) -> None:
    """Catches a new run that makes an unfinished one unresumable, one that takes the file of a live one, and one that
    destroys a file of something else. A second run that is saved over the first replaces both files.
    """
    place = Path(f"{path}.journal")
    saved(path)
    with pytest.raises(CheckpointError, match="not finished"):
        attached(journal=place)
    live = go(attached(), 1)
    live.save(path)
    with pytest.raises(CheckpointError, match="alive"):
        go(attached(), 1).save(path)
    live.release()
    attached(journal=place).close()
    attached(journal=place).close()
    notes = tmp_path / "notes"
    notes.write_text("mine\n")
    with pytest.raises(CheckpointError, match="something else"):
        attached(journal=notes)
    assert notes.read_text() == "mine\n"
    with pytest.raises(CheckpointError, match="no directory"):
        attached(journal=tmp_path / "nowhere" / "journal")
    go(attached(), 2).save(path)
    assert not [each for each in tmp_path.iterdir() if each.name.endswith(".part")]


@pytest.mark.parametrize("lost", [False, True])
def test_an_epoch_goes_on_where_it_was(path: Path, lost: bool) -> None:
    """Shuffled epochs: over all lives every row is used at most once in an epoch, also after a crash in an epoch that
    the checkpoint knows nothing of. Catches an order that is drawn anew within an epoch.
    """
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=10, epochs=3, batches=BatchSampling.SHUFFLED)
    numbered = torch.cat([torch.arange(ROWS, dtype=torch.float64)[:, None], DATA[0][:, 1:]], 1)
    used: list[int] = []

    def go(run: Run, steps: int) -> None:
        last = run.steps + steps
        for x, y in run.batches():
            used.extend([] if run.rehearsing else x[:, 0].long().tolist())
            if run.step(((run.model(x / ROWS) - y) ** 2).sum(1)) and run.steps == last:
                break

    run = attached(plan, data=(numbered, DATA[1]))
    go(run, 4)
    run.save(path)
    if lost:
        go(run, 5)  # into the second epoch
    crashed(run)
    again = resumed(path, plan, data=(numbered, DATA[1]))
    go(again, 18 - again.steps)
    assert len(used) == 3 * ROWS
    for epoch in range(3):
        assert sorted(used[epoch * ROWS : (epoch + 1) * ROWS]) == list(range(ROWS))
    assert used[:ROWS] != used[ROWS : 2 * ROWS]


def test_the_crash_test_would_notice_a_journal_that_is_written_too_late(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted mistake: a journal that is written only when a checkpoint is gives a crashed run its steps again."""
    monkeypatch.setattr(Journal, "begin", lambda self, number, sampler: None)
    run = go(attached(), 3)
    run.save(path)
    go(run, 2)
    crashed(run)
    assert resumed(path).steps == 3
