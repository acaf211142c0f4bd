"""Checkpoints: a model, its optimizer and what it has cost, in one file that is continued as a whole or not at all."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import pickle
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import torch
from torch import Tensor, nn

from privet.core import Event, InvalidInput, Randomness, Unit
from privet.core.random import Rng, SeededRng
from privet.training.identity import Identity
from privet.training.journal import CheckpointError, Journal, for_me_alone, sync_directory
from privet.training.sampling import Sampler

if TYPE_CHECKING:
    from privet.ledger import Charge, Fingerprint
    from privet.training.budget_charge import BudgetCharge
    from privet.training.plan import DPSGD

__all__ = ["INSIDE", "Checkpoint", "CheckpointStore", "FixedTerms", "next_randomness", "read"]

_FORMAT: Final = "privet checkpoint"
_VERSION: Final = 2
INSIDE: Final = "for plan.attach(..., resume=path): weights that go on without their bill are not private"
"""The key under which the tensors lie. Whoever takes the model out by hand has read it."""
_SEAL: Final = b"privet checkpoint, sha256 "
_SEAL_BYTES: Final = len(_SEAL) + 64
_PIECE: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class FixedTerms:
    """What of a run was fixed when it was attached."""

    asked: DPSGD
    """The plan as it was given, before its noise was calibrated."""
    noise_multiplier: float
    event: Event
    unit: Unit
    units: int | None
    """How many units were drawn from, where that is public."""
    fingerprint: Fingerprint | None
    data: Identity

    def record(self, run: str) -> dict[str, Any]:
        """As JSON data. Of fingerprint and data it has only hashes under the run's name, as a ledger has."""
        return {
            "run": run,
            "plan": _described(self.asked),
            "noise_multiplier": self.noise_multiplier,
            "event": json.loads(self.event.to_json()),
            "unit": json.loads(self.unit.to_json()),
            "units": self.units,
            "fingerprint": None if self.fingerprint is None else self.fingerprint.keyed(run.encode()),
            "data": self.data.keyed(run.encode()),
        }


class CheckpointStore:
    """Keeps the journal of a run, and writes its checkpoints."""

    def __init__(
        self, terms: FixedTerms, sampler: Sampler, run: str | None = None, journal: Journal | None = None
    ) -> None:
        self.terms, self.sampler, self._journal = terms, sampler, journal
        self._run = secrets.token_hex(16) if run is None else run

    def open_journal(self, path: str | os.PathLike[str], steps: int = 0, *, replace: bool = False) -> Journal:
        """Return the run's journal; create it at this path if there is none yet.

        Args:
            path: Path of a new journal.
            steps: Number of steps that are spent.
            replace: Whether to replace a file that exists.
        """
        if self._journal is None:
            self._journal = Journal.create(
                Path(path),
                run=self._run,
                total=self.sampler.steps_of(),
                steps=steps,
                sampler=self.sampler.state(),
                replace=replace,
            )
        return self._journal

    def begin(self, number: int) -> None:
        """Record a step in the journal, before anything is drawn for it.

        Args:
            number: Number of the step, counted from 0.
        """
        if self._journal is not None:
            self._journal.begin(number, self.sampler.state())

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        average: nn.Module | None,
        clip: float,
        steps: int,
        charge: Charge | None,
    ) -> None:
        """Write a checkpoint. The journal is written first: it may be ahead of a checkpoint, and never behind.

        Args:
            path: The checkpoint file.
            model: The model.
            optimizer: Its optimizer.
            average: Running average of the model, or None.
            clip: Clip of the current step.
            steps: Number of steps that are spent.
            charge: Charge of the run, or None.

        Raises:
            InvalidInput: The directory does not exist, or the state holds values that cannot be stored.
        """
        place = Path(path).absolute()
        if not place.parent.is_dir():
            raise InvalidInput("path", f"is in {place.parent}, which is no directory", "make it first")
        tensors = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "average": None if average is None else average.state_dict(),
        }
        record = self.terms.record(self._run) | {
            "charge": None if charge is None else {"id": charge.id, "token": charge.token, "budget": charge.budget},
            "steps": steps,
            "clip": clip,
            "sampler": self.sampler.state(),
            "model": _structure(model),
            "optimizer": _groups(model, optimizer),
        }
        journal = self.open_journal(f"{place}.journal", steps, replace=True)
        journal.settle(steps, self.sampler.state())
        where = os.path.relpath(journal.path, place.parent)
        _write(place, record | {"journal": {"path": Path(where).as_posix(), "head": journal.head}}, tensors)

    def close(self, steps: int, *, released: bool = False) -> None:
        """Close the journal. Unless the run was released, it may be resumed from its last checkpoint.

        Args:
            steps: Number of steps that are spent.
            released: Whether the model was released.
        """
        if self._journal is None:
            return
        # The last line gives back what was written ahead, or says that all is over. Without it nothing is undercharged.
        with suppress(CheckpointError):
            if released:
                self._journal.end(steps)
            else:
                self._journal.settle(steps, self.sampler.state())
        self._journal.close()


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A complete checkpoint of this version, as read from its file."""

    path: Path
    record: Mapping[str, Any]
    tensors: Mapping[str, Any]

    @property
    def run(self) -> str:
        """Random name of the run, which stays the same when it is resumed."""
        return str(self.record["run"])

    @property
    def clip(self) -> float:
        """The clip when the checkpoint was saved."""
        return float(self.record["clip"])

    def calibrated(self, plan: DPSGD) -> DPSGD:
        """Return a plan with the noise multiplier of the run; raise `InvalidInput` for another plan.

        Args:
            plan: The plan that the run was attached with.
        """
        noise, saved = float(self.record["noise_multiplier"]), self.record["plan"]
        given = _described(plan)
        if given == saved:
            return plan if plan.epsilon is None else replace(plan, noise_multiplier=noise, epsilon=None)
        different = [
            f"{name} = {given[name]!r}, not {saved.get(name)!r}" for name in given if given[name] != saved.get(name)
        ]
        advice = "resume with the plan that the run was attached with; a new plan is a new run, with a new bill"
        raise InvalidInput("plan", f"is not that of the checkpoint: {'; '.join(different)}", advice)

    def check(self, fixed: FixedTerms, model: nn.Module, optimizer: torch.optim.Optimizer, rng: Rng) -> None:
        """Raise `InvalidInput` for arguments other than those of the run. Nothing has been changed then.

        Args:
            fixed: Terms of the resumed run.
            model: The model.
            optimizer: Its optimizer.
            rng: Source of randomness.
        """
        next_randomness(rng, 0)
        own = fixed.record(self.run)
        if own["unit"] != self.record["unit"]:
            advice = "give users= exactly if the run was attached with it"
            raise InvalidInput("users", f"makes the unit {fixed.unit}, and the run protects another", advice)
        if own["units"] != self.record["units"]:
            problem = f"has {own['units']} units, and the run was attached to one with {self.record['units']}"
            raise InvalidInput("dataset", problem, "the plan counts them; give the same data")
        if own["event"] != self.record["event"]:
            problem = "gives another event than the run was attached with"
            raise InvalidInput("plan", problem, "resume with the same plan, data set, users and cap")
        if (own["fingerprint"] is None) != (self.record["fingerprint"] is None):
            problem = "is missing" if own["fingerprint"] is None else "was not given when the run was attached"
            raise InvalidInput("fingerprint", problem, "resume with what the run was attached with")
        if not hmac.compare_digest(own["fingerprint"] or "", self.record["fingerprint"] or ""):
            raise InvalidInput("fingerprint", "is of other data", "resume with the data that the run was attached to")
        _same("model", _structure(model), self.record["model"])
        _same("optimizer", _groups(model, optimizer), self.record["optimizer"])
        if not hmac.compare_digest(own["data"], self.record["data"]):
            # How many rows there are may be private, so what differs is not said.
            problem = "is not the one that the run was attached to, or its rows or users come in another order"
            raise InvalidInput(
                "dataset", problem, "resume with the same data; other data is a new run, with a new bill"
            )

    def revive(
        self, sampler: Sampler, event: Event, charge: BudgetCharge | None, at: str | os.PathLike[str] | None
    ) -> tuple[Journal, Charge | None, bool]:
        """Open the journal, for this process alone, and resume the charge.

        Args:
            sampler: Sampler of the run, into which its state is loaded.
            event: Privacy event of the run.
            charge: Budget that the run was attached with, or None.
            at: Path of the journal, if it was moved.

        Returns:
            The journal, the charge, and whether the ledger has recorded that noise may have been drawn.

        Raises:
            InvalidInput: The charge is not that of the run.
            CheckpointError: The journal cannot be trusted, or the ledger's entry is for another event.
        """
        from privet.ledger import State

        known = self.record["journal"]
        place = Path(at) if at is not None else self.path.parent / known["path"]
        journal = Journal.open(place, run=self.run, total=sampler.steps_of(), head=str(known["head"]))
        with ExitStack() as refused:
            refused.callback(journal.close)  # a traceback that somebody keeps would keep it locked
            sampler.load(self.record["sampler"] if journal.sampler is None else journal.sampler)
            resumed = self._resume_charge(charge, event)
            journal.go_on(int(self.record["steps"]))
            refused.pop_all()
        return journal, resumed, resumed is not None and resumed.state is State.DRAWING

    def _resume_charge(self, charge: BudgetCharge | None, event: Event) -> Charge | None:
        own = self.record["charge"]
        if own is None:
            if charge is not None:
                problem = "is given, and the run was attached without one, so that its steps so far are on no bill"
                raise InvalidInput("charge", problem, "leave it out, or attach a new run")
            return None
        if charge is None or charge.budget.name != own["budget"]:
            problem = "is missing" if charge is None else f"is to {charge.budget.name!r}"
            advice = "give the budget that the run was attached with"
            raise InvalidInput("charge", f"{problem}, and the run is charged to {own['budget']!r}", advice)
        if charge.ledger.entry(own["id"]).event != event:
            raise CheckpointError(f"entry {own['id']} of the ledger is for another event than this run's")
        return charge.ledger.resume(own["id"], own["token"])

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer, average: nn.Module | None) -> None:
        """Load the stored state.

        Args:
            model: The model, whose weights are overwritten.
            optimizer: Its optimizer, whose state is overwritten.
            average: Running average of the model, or None.
        """
        model.load_state_dict(self.tensors["model"])
        optimizer.load_state_dict(self.tensors["optimizer"])
        if average is not None:
            average.load_state_dict(self.tensors["average"])


def next_randomness(rng: Rng, life: int) -> Rng:
    """Return the randomness of a resumed run; raise `InvalidInput` for a source that may repeat earlier noise.

    Args:
        rng: The given source of randomness.
        life: Number of times that the run was resumed.
    """
    if rng.kind is Randomness.SECURE:
        return rng
    if isinstance(rng, SeededRng):
        return rng.child("resumed").child(life)
    problem = f"is a {type(rng).__name__}, which may repeat the noise of the steps before"
    raise InvalidInput("rng", problem, "leave it out, or give a SeededRng")


def read(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint, after verifying its checksum; nothing in it is executed.

    Args:
        path: The checkpoint file.

    Raises:
        InvalidInput: There is no such file.
        CheckpointError: The file is damaged, was edited, or is of another version.
    """
    place = Path(path).absolute()
    if not place.is_file():
        raise InvalidInput("path", f"names no file: {place}", "give what run.save was given")
    _check_seal(place)
    try:
        found = torch.load(place, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{place} cannot be read by this version of torch: {error}") from error
    if found[_FORMAT] != _VERSION:
        raise CheckpointError(f"{place} has version {found[_FORMAT]!r}, and this code reads version {_VERSION}")
    return Checkpoint(place, json.loads(found["record"]), found[INSIDE])


def _write(place: Path, record: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Replace the file atomically, once the new one is completely on the disk."""
    _plain(tensors, "")
    whole = {_FORMAT: _VERSION, "record": json.dumps(record, sort_keys=True, allow_nan=False), INSIDE: dict(tensors)}
    part = place.with_name(f"{place.name}.part")
    try:
        with open(part, "w+b", opener=for_me_alone) as file:
            torch.save(whole, file)
            _seal(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
    sync_directory(place)


def _seal(file: BinaryIO) -> None:
    """Add the checksum of all that stands before it.

    torch writes a zip archive, which may end with a comment: two bytes for its length, 0 so far, and the comment.
    """
    file.seek(-2, os.SEEK_END)
    file.write(_SEAL_BYTES.to_bytes(2, "little"))
    digest = _hashed(file, file.tell())
    file.write(_SEAL + digest.encode())


def _check_seal(place: Path) -> None:
    with place.open("rb") as file:
        length = file.seek(0, os.SEEK_END) - _SEAL_BYTES
        file.seek(max(length, 0))
        seal = file.read()
        if not seal.startswith(_SEAL):
            problem = "is no checkpoint of run.save, or was cut; a model without its bill cannot be resumed"
            raise CheckpointError(f"{place} {problem}")
        if seal != _SEAL + _hashed(file, length).encode():
            raise CheckpointError(f"{place} was damaged or edited: its checksum is not that of what it holds")


def _hashed(file: BinaryIO, length: int) -> str:
    """SHA-256 of the first bytes of a file, which is left where they end."""
    digest = hashlib.sha256()
    file.seek(0)
    while piece := file.read(min(length, _PIECE)):
        digest.update(piece)
        length -= len(piece)
    return digest.hexdigest()


def _plain(value: Any, name: str) -> None:
    """Refuse what could only be loaded by executing something."""
    if type(value) in (dict, OrderedDict):
        for key, each in value.items():
            _plain(key, name)
            _plain(each, f"{name}.{key}")
    elif type(value) in (list, tuple):
        for each in value:
            _plain(each, name)
    elif not (value is None or type(value) in (bool, int, float, str, Tensor)):
        problem = f"holds a {type(value).__name__} at {name.lstrip('.')}, which a checkpoint cannot"
        raise InvalidInput("state_dict", problem, "keep tensors, numbers and texts in what is saved")


def _described(value: Any) -> Any:
    """A plan, or what a plan is made of, as JSON data."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_described(each) for each in value]
    if is_dataclass(value):
        body = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    elif hasattr(value, "__dict__"):
        body = vars(value)
    else:
        problem = f"holds a {type(value).__name__}, which cannot be written into a checkpoint"
        raise InvalidInput("plan", problem, "make it a frozen dataclass of numbers and texts")
    return {"is": type(value).__name__} | {name: _described(each) for name, each in body.items()}


def _structure(model: nn.Module) -> dict[str, list[Any]]:
    """What a model is made of, without its weights."""
    tensors = [(name, value) for name, value in model.state_dict().items() if isinstance(value, Tensor)]
    return {
        "modules": [[name, type(module).__qualname__] for name, module in model.named_modules()],
        "tensors": [[name, str(value.dtype), list(value.shape)] for name, value in tensors],
        "trained": [[name] for name, parameter in model.named_parameters() if parameter.requires_grad],
    }


def _groups(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, list[Any]]:
    """Which parameter stands where in an optimizer: its state is told apart by places alone."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = [[names.get(id(parameter), "") for parameter in group["params"]] for group in optimizer.param_groups]
    return {"kind": [[type(optimizer).__qualname__]], "groups": groups}


def _same(argument: str, own: Mapping[str, list[Any]], saved: Mapping[str, list[Any]]) -> None:
    """Refuse another structure, naming the first difference."""
    for kind, mine in own.items():
        theirs = saved[kind]
        if mine != theirs:
            place = next(
                (i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), min(len(mine), len(theirs))
            )
            words = [" ".join(map(str, rows[place])) if place < len(rows) else "nothing" for rows in (mine, theirs)]
            problem = f"is not that of the checkpoint: among its {kind} it has {words[0]} where {words[1]} was"
            raise InvalidInput(argument, problem, "build it as it was when the run was attached")
