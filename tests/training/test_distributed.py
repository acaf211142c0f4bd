"""Runs on 2 and 4 real processes (gloo) release what one process releases: the same law, once paid, on every replica.

`processes.py` is what each process does. All of it is seeded; statistical tests state the chance that a correct run
fails under a seed picked at random.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privet.core.errors import BudgetExceeded, PrivetError
from privet.training.distributed import World, share
from privet.training.rendezvous import ProcessError, Rendezvous, SyncPoint, _heard, _told
from privet.training.sampling import SampledBatch
from tests.training.processes import BATCH, CLIP, PLAN, ROWS, SIGMA, STEPS

ROOT = Path(__file__).parents[2]
ALARM = 1e-6
SCENARIOS = ("same_weights", "replicas", "noise", "count_noise", "count", "rows", "ledger", "resumed", "failures")
Outcome = Callable[[int], list[dict[str, Any]]]


def launched(*command: str) -> int:
    """Run a program and everything that it starts; nothing is left behind if it hangs."""
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": loopback}
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, start_new_session=True)
    try:
        return process.wait(timeout=600)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def read(directory: Path) -> list[dict[str, Any]]:
    """What each process wrote, in the order of their ranks."""
    files = sorted(directory.glob("*.json"), key=lambda file: int(file.stem))
    return [json.loads(file.read_text()) for file in files]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What each of so many processes saw; one program runs all scenarios on 1, 2 and 4 of them."""
    place = tmp_path_factory.mktemp("processes")
    launched("-m", "tests.training.processes", "1,2,4", str(place), *SCENARIOS)
    known = {size: read(place / str(size)) for size in (1, 2, 4)}
    assert [len(each) for each in known.values()] == list(known)
    return known.__getitem__


MANY = pytest.mark.parametrize("size", [2, 4])


@MANY
def test_the_weights_are_those_of_one_process(outcome: Outcome, size: int) -> None:
    """Without noise, in float64, with Adam, averaged weights and micro-batches that differ between the processes.

    Catches sums divided by the number of processes or by a share of the batch, gradients that are averaged, rows that
    are left out or counted twice, and micro-batches whose number must be the same everywhere.
    """
    alone = outcome(1)[0]["same_weights"]
    assert len(alone["weights"]) == STEPS
    for found in outcome(size):
        for mine, one in zip(found["same_weights"]["weights"], alone["weights"], strict=True):
            for got, wanted in zip(mine, one, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
        for got, wanted in zip(found["same_weights"]["average"], alone["average"], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
    moved = np.abs(np.subtract(alone["weights"][0][0], alone["weights"][-1][0])).max()
    assert moved > 0.05


@MANY
def test_replicas_have_the_same_bits_after_every_step(outcome: Outcome, size: int) -> None:
    """With noise, momentum, averaged weights and an adaptive clip, from weights that differed on every process.

    Catches noise that differs by process, an order of summation that does, and a clip that each learns for itself.
    """
    found = [each["replicas"] for each in outcome(size)]
    assert {each["began"] for each in found} == {found[0]["first"]}
    assert len({each["first"] for each in found}) == 1
    for after in zip(*(each["after"] for each in found), strict=True):
        assert len({tuple(each) for each in after}) == 1
    assert len({tuple(each) for each in found[0]["after"]}) == STEPS
    assert len({clip for _, clip in found[0]["after"]}) == STEPS
    assert {each["event"] for each in found} == {outcome(1)[0]["replicas"]["event"]}


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_noise_is_there_once(outcome: Outcome, size: int) -> None:
    """The gradients are zero, so what the optimizer is given is noise of deviation σ·C/L on every coordinate.

    Catches noise on every process (√size too much, or size times if they share a seed), on none, noise of σ/√size, a
    divisor other than the whole batch's, and noise that comes again. False alarms: 1e-6 for each of the two numbers.
    """
    found = [each["noise"] for each in outcome(size)]
    assert len({each["bits"] for each in found}) == 1
    numbers, variance = found[0]["numbers"], (SIGMA * CLIP / BATCH) ** 2
    assert numbers == STEPS * 7 * 200
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], numbers)
    assert low < found[0]["squares"] / variance < high
    lagged = stats.norm.isf(ALARM / 2) * np.sqrt(numbers * (STEPS - 1) / STEPS)
    assert abs(found[0]["lag"] / variance) < lagged


def test_the_test_of_the_noise_would_notice_the_usual_mistakes() -> None:
    """Noise per process, for two or four, or divided by √size, or absent, lies far outside the bounds above."""
    numbers = STEPS * 7 * 200
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], numbers)
    for factor in (2.0, 4.0, 16.0, 0.5, 0.25, 0.0):  # of the variance
        law = stats.chi2(numbers, scale=factor) if factor else stats.uniform(0, 1e-9)
        assert law.cdf(high) - law.cdf(low) < 1e-12


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_noise_of_the_count_is_there_once(outcome: Outcome, size: int) -> None:
    """No row is ever drawn, so the adaptive clip moves by the noise of its count, of deviation rate · count_noise / L.

    Catches noise on the count of every process, or of none. False alarms: 1e-6.
    """
    clips = [CLIP, *outcome(size)[0]["count_noise"]["clips"]]
    moves = [np.log(after / before) for before, after in pairwise(clips)]
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], len(moves))
    assert low < np.sum(np.square(moves)) / (0.1 * 1.0 / BATCH) ** 2 < high
    # Twice as much of it, or half, would show.
    assert stats.chi2(len(moves), scale=2.0).cdf(high) < 1e-2
    assert stats.chi2(len(moves), scale=0.5).sf(low) < 1e-2
    assert all(each["count_noise"]["clips"] == clips[1:] for each in outcome(size))


@MANY
def test_the_count_is_that_of_the_whole_batch(outcome: Outcome, size: int) -> None:
    """Catches a clip that follows the norms of one process's rows."""
    alone = outcome(1)[0]["count"]["clips"]
    assert len(set(alone)) == STEPS
    for found in outcome(size):
        np.testing.assert_allclose(found["count"]["clips"], alone, rtol=1e-9)


@MANY
@pytest.mark.parametrize("how", ["poisson", "users", "few", "none", "fixed", "shuffled"])
def test_the_processes_share_one_batch(outcome: Outcome, size: int, how: str) -> None:
    """Together they see each row of the logical batch once, the same batch that one process draws.

    Catches a batch drawn by every process, rows that two of them see, and rows that none does.
    """
    found = [each["rows"][how] for each in outcome(size)]
    alone = outcome(1)[0]["rows"][how]
    assert [each["drawn"] for each in found[1:]] == [[]] * (size - 1)
    assert found[0]["drawn"] == alone["drawn"]
    assert {each["steps"] for each in found} == {alone["steps"]} == {len(alone["drawn"])}
    assert len({each["bits"] for each in found}) == 1
    for drawn, *seen in zip(alone["drawn"], *(each["seen"] for each in found), strict=True):
        assert Counter(row for each in seen for row in each) == Counter(drawn)
        if how != "users":
            assert max(map(len, seen)) - min(map(len, seen)) <= 1


@MANY
def test_a_user_is_with_one_process(outcome: Outcome, size: int) -> None:
    """Catches a cut through a user's rows, by which it would be clipped twice and could add twice the clip."""
    found = [each["rows"]["users"]["seen"] for each in outcome(size)]
    for seen in zip(*found, strict=True):
        owners = [{row % 37 for row in each} for each in seen]
        assert sum(map(len, owners)) == len(set().union(*owners))
        assert max(Counter(row % 37 for each in seen for row in each).values(), default=0) <= 4
    assert all(any(each) for each in found)


@MANY
def test_rows_are_drawn_at_the_rate_that_is_priced(outcome: Outcome, size: int) -> None:
    """Catches a rate that is multiplied or divided by the number of processes. False alarms: 1e-6."""
    seen = sum(len(step) for each in outcome(size) for step in each["rows"]["poisson"]["seen"])
    law = stats.binom(ROWS * 60, BATCH / ROWS)
    assert law.ppf(ALARM / 2) <= seen <= law.ppf(1 - ALARM / 2)
    assert PLAN.sample_rate == BATCH / ROWS


@MANY
def test_empty_batches_are_steps(outcome: Outcome, size: int) -> None:
    """No process has a row, or only one has: the step is made, with noise, and the replicas stay the same."""
    nothing = [each["rows"]["none"] for each in outcome(size)]
    assert all(each["seen"] == [[], [], []] for each in nothing)
    assert nothing[0]["bits"] != outcome(size)[0]["replicas"]["first"]
    few = [each["rows"]["few"]["seen"] for each in outcome(size)]
    assert any(sum(map(bool, seen)) == 1 for seen in zip(*few, strict=True))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_one_charge_for_all(outcome: Outcome, size: int) -> None:
    """One entry, reserved, drawn and committed by one process; the next run is refused on every process.

    Catches a charge for each process, none, one that is not drawn before the first batch, and a refusal that only one
    process hears of, while the others go on or wait.
    """
    alone, found = outcome(1)[0]["ledger"], [each["ledger"] for each in outcome(size)]
    event = alone["release"][0]
    for moment, state in (
        ("attached", "reserved"),
        ("drawing", "drawing"),
        ("released", "committed"),
        ("refused afterwards", "committed"),
    ):
        assert found[0][moment] == [[state, event]]
    for each in found:
        assert each["release"] == alone["release"]
        assert each["release"][1] == ["rows"]
        assert each["refused"][0] == "BudgetExceeded"
        assert "rows" in each["refused"][1]


@MANY
def test_a_run_goes_on_with_all_its_processes(outcome: Outcome, size: int) -> None:
    """Saved after 4 steps, crashed after 6, gone on with by other objects on every process: 6 steps are left, from the
    weights of the 4th. Without noise the weights are those of one process that did the same.

    Catches a checkpoint that each process writes for itself, weights or momentum that only the first one gets back,
    steps that are made again, and processes that count differently.
    """
    alone, found = outcome(1)[0]["resumed"], [each["resumed"] for each in outcome(size)]
    for name in ("quiet", "loud"):
        assert len({json.dumps([each[name][key] for key in ("began", "after")]) for each in found}) == 1
        assert [step for step, _ in found[0][name]["after"]] == list(range(7, STEPS + 1))
        assert {each[name]["event"] for each in found} == {alone[name]["event"]}
        for got, wanted in zip(found[-1]["quiet"]["weights"], alone["quiet"]["weights"], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11)
    assert {each["loud"]["release"] for each in found} == {alone["loud"]["release"]}
    assert found[0]["states"] == alone["states"] == ["committed"]


@MANY
def test_a_run_goes_on_once_on_all_processes(outcome: Outcome, size: int) -> None:
    """Its files are held, or it was released: every process hears of it, and of a journal that cannot be made.

    Catches a refusal that process 0 keeps to itself while the others wait or go on.
    """
    for rank, each in enumerate(found["resumed"] for found in outcome(size)):
        for name, word in (("quiet", "alive"), ("loud", "was released")):
            kind, text = each[name]["again"]
            assert kind == ("CheckpointError" if rank == 0 else "ProcessError")
            assert word in text
        kind, text = each["nowhere"]
        assert kind == ("CheckpointError" if rank == 0 else "ProcessError")
        assert "there is no directory" in text


@MANY
def test_an_error_on_one_process_is_an_error_on_all(outcome: Outcome, size: int) -> None:
    """The last process fails, and says why; the others hear of it where they wait, and none goes on alone.

    Catches processes that hang (this test would not end), that step without the others, or that swallow the reason.
    """
    *others, last = [each["failures"] for each in outcome(size)]
    assert last["losses"][0] == last["model"][0] == "InvalidInput"
    assert last["reading"] == ["PrivetError", "this row is damaged"]
    for each in others:
        assert each["losses"][0] == each["reading"][0] == each["model"][0] == "ProcessError"
        assert each["losses"][1] == f"process {size - 1} stopped with InvalidInput: {last['losses'][1]}"
        assert "this row is damaged" in each["reading"][1]
        assert "BatchNorm1d" in each["model"][1]
    for each in (*others, last):
        assert each["steps"] == 3
        assert each["again"][0] == "ProcessError"
        assert "has ended on all processes" in each["again"][1]
        assert each["anew"] == STEPS


@MANY
def test_processes_that_differ_are_refused(outcome: Outcome, size: int) -> None:
    """Each process with its own part of the data, its own order of the rows, another plan, another learning rate.

    Catches the habit of sharding the data, after which rows would be drawn at another rate than was priced.
    """
    for each in (found["failures"] for found in outcome(size)):
        for what in ("dataset", "order", "plan", "optimizer"):
            kind, text = each[what]
            assert kind == "InvalidInput"
            assert text.startswith(f"{'dataset' if what == 'order' else what} is not the same on all processes")


@MANY
def test_processes_that_drift_apart_are_stopped(outcome: Outcome, size: int) -> None:
    """One weight moved by 1e-6 on one process; and one process that attaches while the others take a batch."""
    for each in (found["failures"] for found in outcome(size)):
        assert each["weights"][0] == each["place"][0] == "ProcessError"
        assert "the weights are no longer the same" in each["weights"][1]
        assert "process 0 takes a batch" in each["place"][1]
        assert f"process {size - 1} attaches a run" in each["place"][1]


def test_a_process_that_dies_is_noticed(tmp_path: Path) -> None:
    """The other one raises as the connection closes, and does not wait."""
    launched("-m", "tests.training.processes", "2", str(tmp_path), "death")
    (found,) = read(tmp_path / "2")
    assert found["death"]["raised"][0] == "ProcessError"
    assert "cannot be reached" in found["death"]["raised"][1]


def test_a_program_under_torchrun(tmp_path: Path) -> None:
    """A program that forgets to initialise is told so on every process; with it, the same loop trains one model."""
    options = ("--standalone", "--nproc-per-node", "2", "-m", "tests.training.processes", "torchrun", str(tmp_path))
    assert launched("-m", "torch.distributed.run", *options) == 0
    found = read(tmp_path)
    assert [each["size"] for each in found] == [2, 2]
    for each in found:
        assert each["forgotten"][0] == "ProcessError"
        assert "init_process_group" in each["forgotten"][1]
    assert found[0]["bits"] == found[1]["bits"]
    assert {each["event"] for each in found} == {PLAN.event().to_json()}


@given(
    sizes=st.lists(st.integers(0, 6), max_size=20),
    grouped=st.booleans(),
    processes=st.integers(1, 7),
)
def test_shares_are_whole_units_and_all_of_them(sizes: list[int], grouped: bool, processes: int) -> None:
    """Catches rows lost or doubled at the cuts, a unit that is cut, and groups that are not numbered as a batch's are.

    Units without rows are allowed.
    """
    groups = np.repeat(np.arange(len(sizes)), sizes).astype(np.int64)
    rows = np.arange(len(groups), dtype=np.int64) * 3 + 1
    batch = SampledBatch(rows, groups if grouped else None, len(sizes) if grouped else len(rows))
    shares = [share(batch, rank, processes) for rank in range(processes)]
    assert np.concatenate([each.indices for each in shares]).tolist() == rows.tolist()
    most = max(sizes, default=0) if grouped else 1
    for each in shares:
        assert len(each.indices) <= len(rows) / processes + most
        if each.groups is None:
            assert not grouped
            assert each.units == len(each.indices)
        else:
            assert len(each.groups) == len(each.indices)
            assert not len(each.groups) or (each.groups[0] == 0 and each.groups[-1] == each.units - 1)
            assert (np.diff(each.groups) >= 0).all()
            owners = groups[(each.indices - 1) // 3]
            assert len(np.unique(owners)) == len(np.unique(each.groups))
    if grouped:
        owners_of = [set(groups[(each.indices - 1) // 3].tolist()) for each in shares]
        assert sum(map(len, owners_of)) == len(set().union(*owners_of))


def test_one_process_exchanges_nothing() -> None:
    """Without `torch.distributed` everything is local, and no call reaches for other processes."""
    world, flat = World.here(), torch.ones(3)
    assert (world.rank, world.size, world.leads) == (0, 1, True)
    assert world.total(flat, 2.5) == 2.5
    assert flat.tolist() == [1.0, 1.0, 1.0]
    assert world.lead(lambda: 7) == 7
    with pytest.raises(PrivetError, match="here alone"), world.together():
        raise PrivetError("here alone")
    world.together().__enter__()  # and the run goes on


def test_what_a_backend_cannot_reach_is_carried() -> None:
    """nccl exchanges what lies on GPUs, so that sums on the CPU go there and back; stood in for by the meta device."""
    tensor = torch.ones(3)
    assert Rendezvous(0, 2, "cpu:gloo,cuda:nccl")._carried(tensor) is tensor
    assert Rendezvous(0, 2, "meta:nccl")._carried(tensor).device.type == "meta"


def test_private_rows_do_not_travel_in_errors() -> None:
    """Of an error that is not Privet's only the name is told; a refused budget is one on every process."""
    heard = _heard(1, _told(ValueError("row 17: Ann, 1970")))
    assert isinstance(heard, ProcessError)
    assert str(heard) == "process 1 stopped with ValueError; its own output has more"
    refused = _heard(0, _told(BudgetExceeded("too much")))
    assert isinstance(refused, BudgetExceeded)
    assert str(refused) == "too much (on process 0)"
    assert Rendezvous().meet(SyncPoint.BATCH, [1, 2]) == [[1, 2]]
