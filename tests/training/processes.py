"""What each of several processes does in the tests of distributed runs; not a test itself.

`python processes.py SIZE,… DIRECTORY NAME…` runs these scenarios on SIZE processes, each of which writes what it saw to
DIRECTORY/SIZE/RANK.json, and so for each size in turn; one process leaves out what takes several. They are forked once
everything is imported, since importing takes longer than the scenarios.
Under torchrun, `processes.py torchrun DIRECTORY` is a program as a user would write it.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
import torch._dynamo  # what an optimizer loads at its first step: once, before the processes are forked
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

import privet
from privet.core.errors import BudgetExceeded, PrivetError
from privet.core.random import Rng, SeededRng
from privet.ledger import Budget, Ledger
from privet.training import DPSGD, Adaptive, BatchSampling, Performance, Run, UserRows
from privet.training.sampling import SampledBatch

ROWS, STEPS, SIGMA, CLIP, BATCH = 300, 12, 1.3, 0.7, 40
PLAN: Final = DPSGD(
    noise_multiplier=SIGMA, delta=1e-5, clip=CLIP, batch_size=BATCH, sample_rate=BATCH / ROWS, steps=STEPS
)
Found = dict[str, Any]


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def data(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Row i begins with i + 1, so that no row is the blank one."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(ROWS, 6, generator=generator, dtype=dtype)
    x[:, 0] = torch.arange(1, ROWS + 1) / ROWS
    return x, torch.randint(0, 3, (ROWS,), generator=generator)


def network(seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 10), nn.LayerNorm(10), nn.Tanh(), nn.Linear(10, 3)).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=dtype))
    return model


class SameRows:
    """Draws from a stream of its own for each step, so that what is drawn does not depend on who else draws."""

    def __init__(self, run: Run) -> None:
        self._inner, self.drawn = run.sampler, list[list[int]]()
        self.steps_of, self.next_step, self.state = run.sampler.steps_of, run.sampler.next_step, run.sampler.state
        run.sampler = self  # type: ignore[assignment]  # as much of one as a run asks for

    def draw(self, step: int, _: Rng) -> SampledBatch:
        drawn = self._inner.draw(step, SeededRng(11, step))
        self.drawn.append(drawn.indices.tolist())
        return drawn


def trained(run: Run, model: nn.Module) -> Iterator[tuple[list[int], bool]]:
    """The loop of a user; for each batch the rows that this process saw, and whether a step was completed."""
    for x, y in run.batches():
        seen = [] if run.rehearsing else [round(float(value) * ROWS) - 1 for value in x[:, 0] if value]
        yield seen, run.step(F.cross_entropy(model(x), y, reduction="none"))


def bits(*modules: nn.Module | None) -> str:
    """A hash of every bit of every parameter."""
    digest = hashlib.sha256()
    for parameter in (parameter for module in modules if module is not None for parameter in module.parameters()):
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def raised(action: Callable[[], object]) -> list[str]:
    """Which error an action raised, and what it said."""
    try:
        action()
    except BudgetExceeded as error:
        return ["BudgetExceeded", str(error)]
    except PrivetError as error:
        return [type(error).__name__, str(error)]
    return []


def same_weights(directory: Path) -> Found:
    """No noise, in float64, with Adam, an average of the weights, and another micro-batch on each process."""
    model = network(dtype=torch.float64)
    plan = replace(PLAN, noise_multiplier=0.0, average=0.9)
    many = Performance(micro_batch=5 + 4 * rank()) if rank() % 2 else None
    run = plan.attach(
        model, torch.optim.Adam(model.parameters(), lr=0.05), data(torch.float64), performance=many, rng=SeededRng(1)
    )
    SameRows(run)
    weights = [
        [parameter.flatten().tolist() for parameter in model.parameters()] for _, done in trained(run, model) if done
    ]
    average = run._average
    assert average is not None
    return {"weights": weights, "average": [parameter.flatten().tolist() for parameter in average.parameters()]}


def replicas(directory: Path) -> Found:
    """Noise, momentum, an average and an adaptive clip; every process begins with other weights."""
    model = network(seed=rank())
    plan = replace(PLAN, average=0.9, clipping=Adaptive(count_noise=3.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    run = plan.attach(model, optimizer, data(), performance=Performance(micro_batch=4 + rank()), rng=SeededRng(2))
    began = bits(model)
    after = [[bits(model, run._average), run.clip.hex()] for _, done in trained(run, model) if done]
    release = run.release(delta=1e-5)
    return {"first": bits(network()), "began": began, "after": after, "event": release.event.to_json()}


def noise(directory: Path) -> Found:
    """Losses that do not depend on the weights, so that what is released is noise."""
    model = nn.Linear(6, 200)
    run = PLAN.attach(model, torch.optim.SGD(model.parameters(), lr=0.0), data(), rng=SeededRng(4))
    released = []
    for x, _ in run.batches():
        if run.step((model(x) * 0.0).sum(1)):
            gradients = [parameter.grad for parameter in model.parameters()]
            released.append(torch.cat([each.flatten() for each in gradients if each is not None]))
    noise = torch.stack(released).double()
    return {
        "numbers": noise.numel(),
        "squares": float(noise.square().sum()),
        "lag": float((noise[1:] * noise[:-1]).sum()),
        "bits": hashlib.sha256(noise.numpy().tobytes()).hexdigest(),
    }


def count_noise(directory: Path) -> Found:
    """Nothing is ever drawn, so that the adaptive clip moves by the noise of its count alone."""
    model = nn.Linear(6, 2)
    plan = replace(PLAN, sample_rate=1e-12, steps=300, clipping=Adaptive(count_noise=1.0, rate=0.1))
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), data(), rng=SeededRng(6))
    clips = [run.clip for _, done in trained(run, model) if done]
    return {"clips": clips}


def count(directory: Path) -> Found:
    """An adaptive clip with next to no noise on its count."""
    model = network(dtype=torch.float64)
    plan = replace(PLAN, noise_multiplier=0.0, clipping=Adaptive(count_noise=1e-12))
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.3), data(torch.float64), rng=SeededRng(5))
    SameRows(run)
    return {"clips": [run.clip for _, done in trained(run, model) if done]}


def rows(directory: Path) -> Found:
    """Which rows each process sees, for all ways to draw them."""
    found: Found = {}
    owners = torch.arange(ROWS) % 37
    for name, plan, users in (
        ("poisson", replace(PLAN, steps=60), None),
        ("users", replace(PLAN, sample_rate=0.3, steps=20), owners),
        ("few", replace(PLAN, sample_rate=0.005, steps=20), None),
        ("none", replace(PLAN, sample_rate=1e-12, steps=3), None),
        (
            "fixed",
            DPSGD(noise_multiplier=SIGMA, delta=1e-5, batch_size=BATCH, steps=5, batches=BatchSampling.FIXED_SIZE),
            None,
        ),
        (
            "shuffled",
            DPSGD(noise_multiplier=SIGMA, delta=1e-5, batch_size=BATCH, epochs=2, batches=BatchSampling.SHUFFLED),
            None,
        ),
    ):
        model = network()
        run = plan.attach(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            data(),
            users=None if users is None else UserRows(users, cap=4),
            rng=SeededRng(8),
        )
        drawn = SameRows(run).drawn
        seen: list[list[int]] = [[]]
        for batch, done in trained(run, model):
            seen[-1] += batch
            seen += [[]] if done else []
        found[name] = {"drawn": drawn, "seen": seen[:-1], "steps": run.steps, "bits": bits(model)}
    return found


def ledger(directory: Path) -> Found:
    """A budget that one run fills; the others are refused."""
    file = directory / "budgets.db"
    plan = replace(PLAN, epsilon=2.0, delta=1e-6, noise_multiplier=None)
    ledger = Ledger(file)
    if rank() == 0:
        ledger.create("rows", epsilon=2.1, delta=1.1e-6)
    if dist.is_initialized():
        dist.barrier()
    found: Found = {}

    def state(name: str) -> None:
        """Looked at by process 0 while no process is under way."""
        if rank() == 0:
            found[name] = [[entry.state.value, entry.event.to_json()] for entry in ledger.show("rows").entries]
        if dist.is_initialized():
            dist.barrier()

    def attached() -> tuple[Run, nn.Module]:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return plan.attach(model, optimizer, data(), charge=ledger.budget("rows"), rng=SeededRng(9)), model

    run, model = attached()
    state("attached")
    loop = trained(run, model)
    for _, done in loop:
        if done:
            break
    state("drawing")
    for _ in loop:
        pass
    release = run.release()
    state("released")
    found["release"] = [release.event.to_json(), release.source, str(release.guarantee)]
    found["refused"] = raised(attached)
    state("refused afterwards")
    ledger.close()
    return found


def resumed(directory: Path) -> Found:
    """Saved after four steps, lost after six, and gone on with by new objects; with a ledger, and without noise too."""
    found: Found = {}
    ledger = Ledger(directory / "resumed.db")
    if rank() == 0:
        ledger.create("rows", epsilon=20.0, delta=1e-5)
    if dist.is_initialized():
        dist.barrier()
    for name, plan in (("quiet", replace(PLAN, noise_multiplier=0.0)), ("loud", replace(PLAN, average=0.9))):
        place, charge = directory / f"{name}.pt", ledger.budget("rows") if name == "loud" else None
        model = network(dtype=torch.float64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
        run = plan.attach(
            model,
            optimizer,
            data(torch.float64),
            charge=charge,
            journal=f"{place}.log",
            rng=SeededRng(7),
        )
        SameRows(run)
        for _, done in trained(run, model):
            if done and run.steps in (2, 4):
                run.save(place)
            if run.steps == 6:
                break
        # As a killed process lets go of its files: without a last word.
        if run._store._journal is not None:
            run._store._journal.close()
        if dist.is_initialized():
            dist.barrier()
        model = network(seed=rank() + 5, dtype=torch.float64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        run = plan.attach(model, optimizer, data(torch.float64), resume=place, charge=charge, rng=SeededRng(7))
        SameRows(run)
        began = bits(model, run._average)
        after = [[run.steps, bits(model, run._average)] for _, done in trained(run, model) if done]
        weights = [parameter.flatten().tolist() for parameter in model.parameters()]
        release = run.release(delta=1e-5) if name == "loud" else None
        found[name] = {
            "began": began,
            "after": after,
            "weights": weights,
            "event": run.event.to_json(),
            "release": None if release is None else str(release.guarantee),
            "again": raised(partial(gone_on, place, plan, charge)),
        }
    if rank() == 0:
        found["states"] = [entry.state.value for entry in ledger.show("rows").entries]
    nowhere = directory / "nowhere" / "journal"
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found["nowhere"] = raised(lambda: PLAN.attach(model, optimizer, data(), journal=nowhere))
    ledger.close()
    return found


def gone_on(place: Path, plan: DPSGD, charge: Budget | None) -> Run:
    """The same checkpoint once more, while its run is alive or after its release."""
    model = network(dtype=torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return plan.attach(model, optimizer, data(torch.float64), resume=place, charge=charge, rng=SeededRng(7))


def failures(directory: Path) -> Found:
    """One process fails where the others do not: in a step, in reading, in attaching; and all begin anew."""
    found: Found = {}
    last = dist.get_world_size() - 1

    kept: list[Run] = []

    def stepped(
        bad: Callable[[nn.Module, Tensor], Tensor], after: Callable[[nn.Module], None] = lambda _: None
    ) -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        performance = Performance(micro_batch=3) if rank() == last else None
        run = PLAN.attach(model, optimizer, data(), performance=performance, rng=SeededRng(9))
        kept.append(run)
        for x, y in run.batches():
            losses = F.cross_entropy(model(x), y, reduction="none")
            fails = rank() == last and run.steps == 3
            run.step(bad(model, losses) if fails else losses)
            if fails:
                after(model)

    found["losses"] = raised(lambda: stepped(lambda _, losses: losses.mean()))
    found["again"] = raised(lambda: kept[-1].step(torch.ones(3)) if rank() == last else next(kept[-1].batches()))
    found["steps"] = kept[-1].steps

    def moved(model: nn.Module) -> None:
        with torch.no_grad():
            next(model.parameters()).view(-1)[3] += 1e-6

    found["weights"] = raised(lambda: stepped(lambda _, losses: losses, moved))

    class Unreadable(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, index: int) -> Any:
            if rank() == last and index > 0:
                raise PrivetError("this row is damaged")
            return torch.ones(6), 0

    def attached(
        dataset: Any = None, plan: DPSGD = PLAN, lr: float = 0.1, model: nn.Module | None = None
    ) -> tuple[Run, nn.Module]:
        model = network() if model is None else model
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        return plan.attach(model, optimizer, data() if dataset is None else dataset, rng=SeededRng(3)), model

    found["reading"] = raised(lambda: list(trained(*attached(Unreadable()))))
    norm = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
    found["model"] = raised(lambda: attached(model=norm if rank() == last else network()))
    shard = tuple(column[rank() :: last + 1] for column in data())
    found["dataset"] = raised(lambda: attached(shard))
    order = tuple(column.flip(0) if rank() == last else column for column in data())
    found["order"] = raised(lambda: attached(order))
    found["plan"] = raised(lambda: attached(plan=replace(PLAN, clip=CLIP + (rank() == last))))
    found["optimizer"] = raised(lambda: attached(lr=0.1 + 0.1 * (rank() == last)))

    def elsewhere() -> None:
        run, _ = attached()
        attached() if rank() == last else next(run.batches())

    found["place"] = raised(elsewhere)
    run, model = attached()
    found["anew"] = sum(done for _, done in trained(run, model))
    return found


def death(directory: Path) -> Found:
    """The last process ends without a word in its third step."""
    model = network()
    run = PLAN.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), data(), rng=SeededRng(3))

    def train() -> None:
        for _ in trained(run, model):
            if run.steps == 3 and rank() == dist.get_world_size() - 1:
                os._exit(3)

    return {"raised": raised(train)}


def torchrun(directory: Path) -> None:
    """A program as a user would write it; and what happens if it forgets to initialise."""
    torch.manual_seed(int(os.environ["RANK"]))
    model = nn.Linear(6, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    forgotten = raised(lambda: PLAN.attach(model, optimizer, data()))
    dist.init_process_group("gloo")
    run = PLAN.attach(model, optimizer, data())
    run.selftest()
    release = privet.fit(
        model,
        data(),
        PLAN,
        loss=lambda out, y: F.cross_entropy(out, y, reduction="none"),
        optimizer=optimizer,
        delta=1e-5,
    )
    found = {"forgotten": forgotten, "bits": bits(model), "event": release.event.to_json(), "size": run.world.size}
    (directory / f"{rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


SCENARIOS: Final[dict[str, Callable[[Path], Found]]] = {
    each.__name__: each
    for each in (same_weights, replicas, noise, count_noise, count, rows, ledger, resumed, failures, death)
}


def main(number: int, size: int, directory: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    if size > 1:
        dist.init_process_group("gloo", init_method=f"file://{directory}/store", rank=number, world_size=size)
    found = {name: SCENARIOS[name](directory) for name in names}
    (directory / f"{number}.json").write_text(json.dumps(found))
    if dist.is_initialized() and "death" not in names:
        dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] == "torchrun":
        torchrun(Path(sys.argv[2]))
    else:
        fork = multiprocessing.get_context("fork")
        for size in map(int, sys.argv[1].split(",")):
            place = Path(sys.argv[2]) / str(size)
            place.mkdir()
            names = [name for name in sys.argv[3:] if size > 1 or name not in ("failures", "death")]
            started = [fork.Process(target=main, args=(number, size, place, names)) for number in range(size)]
            for process in started:
                process.start()
            for process in started:
                process.join()
