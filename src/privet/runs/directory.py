"""The folder of a run while it works: what resuming it after an interruption needs, for its owner's eyes alone."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privet.core import (
    Draw,
    Event,
    Guarantee,
    InvalidInput,
    Randomness,
    Release,
    Unit,
    checked,
    decode,
    encode,
    write_atomically,
)
from privet.runs.request import TrainRequest
from privet.training.models import Model, ModelDescription, restore, store

__all__ = [
    "HIDDEN",
    "LOCK",
    "InterruptedRun",
    "RunDirectory",
    "RunIdentity",
    "StoredCharge",
    "decode_release",
    "default_directory",
    "encode_release",
]

HIDDEN, LOCK, _STATE, _KEPT = ".privet", "lock", "run.json", "kept"
_FORMAT = 2


@dataclass(frozen=True)
class StoredCharge:
    """An entry of the ledger, and what resuming its charge needs."""

    entry: str
    token: str


@dataclass(frozen=True)
class RunIdentity:
    """What a run was started with; a resumed run must have the same."""

    event: str
    """All that was priced, as JSON."""
    facts: str
    """A hash of what is public of the data: the schema, classes, shape and rows."""
    files: str
    """A keyed hash of the rows, and of the file of one's own model: it tells nothing of them to those who cannot guess
    them whole."""
    key: str

    def require_same(self, now: RunIdentity) -> None:
        """Refuse to resume a run with other data, another plan or another request than was charged.

        Args:
            now: Identity of the resumed run.

        Raises:
            InvalidInput: The identities differ.
        """
        for name, what in (
            ("facts", "request, the schema, or how rows are held out,"),
            ("event", "plan"),
            ("files", "model's code or the data"),
        ):
            if getattr(self, name) != getattr(now, name):
                problem = f"is not what the run was begun with, so that it is not what was charged: the {what} changed"
                raise InvalidInput("resume", problem, "put it back as it was; or train anew, which costs anew")


@dataclass(frozen=True)
class InterruptedRun:
    """A run that was interrupted."""

    request: TrainRequest
    command: str
    charges: tuple[StoredCharge, ...]
    identity: RunIdentity
    head: str | None
    """The chain's head, if the charge was committed."""


@dataclass(frozen=True)
class RunDirectory:
    """The hidden part of a run directory. Every released value is stored here before anything else happens, so that a
    resumed run reads it and never draws it again.
    """

    folder: Path

    @property
    def hidden(self) -> Path:
        """The hidden directory, which is neither shared nor signed."""
        return self.folder / HIDDEN

    @property
    def checkpoint(self) -> Path:
        """Checkpoint of DP-SGD."""
        return self.hidden / "checkpoint.pt"

    @property
    def journal(self) -> Path:
        """Journal of DP-SGD, in which steps are recorded before they start."""
        return self.hidden / "journal"

    @property
    def standing(self) -> Path:
        """Standing of a selection; internal."""
        return self.hidden / "standing.json"

    @property
    def unfinished(self) -> bool:
        """Whether a run was started here and not finished."""
        return (self.hidden / _STATE).exists()

    @property
    def can_resume(self) -> bool:
        """Whether there is stored work that a resumed run would continue from."""
        return any(path.exists() for path in (self.checkpoint, self.standing, self.hidden / _KEPT))

    @property
    def trained(self) -> bool:
        """Whether the training of a model has started."""
        models = (self.hidden / _KEPT).glob("*-model")
        return self.checkpoint.exists() or self.standing.exists() or any(models)

    def start(
        self, request: TrainRequest, command: str, charges: tuple[StoredCharge, ...], identity: RunIdentity, plan: str
    ) -> None:
        """Create the hidden directory, and record what was requested, planned and charged.

        Args:
            request: The request of the run.
            command: Command or call, as the ledger and the card show it.
            charges: Entries of the ledger that the run has reserved.
            identity: What the run was started with.
            plan: The plan, as JSON.
        """
        self.hidden.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = {"privet-run": _FORMAT, "asked": request.to_json(), "command": command, "head": None, "plan": plan}
        self._write(state | {"charges": [asdict(each) for each in charges], "stated": asdict(identity)})

    def read_interrupted(self) -> InterruptedRun:
        """Return the request of an interrupted run, and what was charged for it.

        Raises:
            InvalidInput: There is no interrupted run, or it cannot be read.
        """
        state = self._read()
        try:
            charges = tuple(StoredCharge(**each) for each in state["charges"])
            request, identity = TrainRequest.from_json(state["asked"]), RunIdentity(**state["stated"])
            return InterruptedRun(request, state["command"], charges, identity, state["head"])
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise self._unreadable() from None

    def stored_plan(self) -> str:
        """Return the plan that was charged, as JSON."""
        return str(self._read()["plan"])

    def store_plan(self, plan: str) -> None:
        """Replace the plan by its completed form.

        Args:
            plan: The completed plan, as JSON.
        """
        self._write(self._read() | {"plan": plan})

    def store_release(self, name: str, release: Release[Any]) -> None:
        """Store a small released value: the text of a schema, the number of rows, or a score.

        Args:
            name: Name under which it is stored.
            release: The release, whose value is plain JSON data.
        """
        (self.hidden / _KEPT).mkdir(mode=0o700, exist_ok=True)
        text = json.dumps({"value": release.value, **encode_release(release)})
        write_atomically(self.hidden / _KEPT / f"{name}.json", text, "out", private=True)

    def stored_release(self, name: str) -> Release[Any] | None:
        """Return the release that was stored under a name, or None.

        Args:
            name: Name under which it was stored.

        Guarantee: that of the release that was stored; nothing is drawn here.
        """
        path = self.hidden / _KEPT / f"{name}.json"
        if not path.exists():
            return None
        stored = json.loads(path.read_text(encoding="utf-8"))
        return decode_release(stored, stored["value"])

    def store_model(self, name: str, release: Release[Model], described: ModelDescription) -> None:
        """Store a trained model.

        Args:
            name: Name under which it is stored.
            release: The released model.
            described: Description from which the model can be built again.
        """
        folder = self.hidden / _KEPT / f"{name}-model"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        store(folder, release.value, described)
        self.store_release(name, release.map(lambda _: None))

    def stored_model(self, name: str) -> Release[Model] | None:
        """Return the model that was stored before an interruption, or None.

        Args:
            name: Name under which it was stored.

        Guarantee: that of the release that was stored; nothing is drawn here.
        """
        release = self.stored_release(name)
        return None if release is None else release.map(lambda _: restore(self.hidden / _KEPT / f"{name}-model")[0])

    def commit(self, head: str) -> None:
        """Record that the charge was committed.

        Args:
            head: Head of the ledger's hash chain after the commit.
        """
        self._write(self._read() | {"head": head})

    def clear(self) -> None:
        """Remove the hidden directory: the run is complete, or was never started.

        The state that a run would resume from is removed first, and the lock last, so that no other run starts before.
        """
        if not self.hidden.exists():
            return
        (self.hidden / _STATE).unlink(missing_ok=True)
        with suppress(InvalidInput):
            self.empty(but=LOCK)
        shutil.rmtree(self.hidden, ignore_errors=True)

    def empty(self, but: str) -> None:
        """Remove the files of an earlier run, whose stored releases would be taken for those of a new one.

        Args:
            but: Name of the file to keep.

        Raises:
            InvalidInput: A file cannot be removed.
        """
        for path in self.hidden.iterdir():
            if path.name == but:
                continue
            try:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            except OSError as error:
                reason = (error.strerror or "unknown reason").lower()
                problem = f"is {str(self.folder)!r}, whose {HIDDEN}/{path.name} cannot be removed: {reason}"
                raise InvalidInput("out", problem, "name another folder") from None

    def _write(self, state: dict[str, Any]) -> None:
        write_atomically(self.hidden / _STATE, json.dumps(state), "out", private=True)

    def _read(self) -> dict[str, Any]:
        path = self.hidden / _STATE
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if state["privet-run"] != _FORMAT:
                raise InvalidInput("out", f"is {str(self.folder)!r}, of another version of Privet", "use that version")
        except FileNotFoundError:
            if (self.folder / "card.json").exists():
                problem = f"is {str(self.folder)!r}, which is complete"
                raise InvalidInput("out", problem, "there is nothing to go on with") from None
            problem = f"is {str(self.folder)!r}, which is no run that was stopped"
            raise InvalidInput("out", problem, "name the folder of one") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise self._unreadable() from None
        return dict(state)

    def _unreadable(self) -> InvalidInput:
        problem = f"is {str(self.folder)!r}, whose {HIDDEN}/{_STATE} cannot be read"
        return InvalidInput("out", problem, "its charge stays; train again in another folder")


def encode_release(release: Release[Any]) -> dict[str, Any]:
    """Return a release without its value, as plain JSON data.

    Args:
        release: The release.
    """
    return {
        "draws": encode(release.draws),
        "unit": encode(release.unit),
        "randomness": release.randomness.value,
        "guarantee": None if release.guarantee is None else encode(release.guarantee),
    }


def decode_release(data: dict[str, Any], value: Any) -> Release[Any]:
    """Return a release from its stored form and its value.

    Args:
        data: The data that `encode_release` returned.
        value: The value, which was stored separately.

    Guarantee: that of the release that was kept; nothing is drawn here.
    """
    kinds = {"Draw": Draw, "Unit": Unit, **Guarantee.kinds(), **Event.kinds()}
    return Release(
        value,
        tuple(decode(each, Draw, kinds, "draws") for each in data["draws"]),
        decode(data["unit"], Unit, kinds, "unit"),
        checked.member("randomness", data["randomness"], Randomness),
        decode(data["guarantee"], Guarantee | None, kinds, "guarantee"),
    )


def default_directory(data: str, out: Path | None) -> Path:
    """Return the directory of a new run: the requested one, or the first free one below `runs`.

    Args:
        data: Path or name of the data, after which the directory is named.
        out: The requested directory; None for the default.
    """
    if out is not None:
        return out
    stem = Path(data).name.split(".")[0] or "run"
    folder, number = Path("runs") / stem, 1
    while folder.exists():
        number += 1
        folder = folder.with_name(f"{stem}-{number}")
    return folder
