"""The folder of a run while it is at work: what it needs to go on after a stop, for its owner's eyes alone."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.cli.training.asked import Asked
from privet.core import checked
from privet.core.codec import decode, encode
from privet.core.errors import InvalidInput
from privet.core.event import Event
from privet.core.guarantee import Guarantee
from privet.core.randomness import Randomness
from privet.core.release import Draw, Release
from privet.core.unit import Unit
from privet.report.put import put
from privet.training.models import Described, Model, restore, store

__all__ = ["Charged", "Workplace", "place_for", "release_data", "release_of"]

_HIDDEN, _STATE, _FINISHED = ".privet", "run.json", "finished"
_FORMAT = 1


@dataclass(frozen=True)
class Charged:
    """Where the run was charged, and what resuming its charge needs."""

    entry: str
    token: str


@dataclass(frozen=True)
class Workplace:
    """The hidden part of a run's folder."""

    folder: Path

    @property
    def hidden(self) -> Path:
        """Not shared, and not signed."""
        return self.folder / _HIDDEN

    @property
    def checkpoint(self) -> Path:
        """DP-SGD's."""
        return self.hidden / "checkpoint.pt"

    @property
    def journal(self) -> Path:
        """DP-SGD's, in which steps are written down before they begin."""
        return self.hidden / "journal"

    @property
    def standing(self) -> Path:
        """Of a selection; internal."""
        return self.hidden / "standing.json"

    @property
    def begun(self) -> bool:
        """Whether there is anything that a resumed run would go on from."""
        return any(path.exists() for path in (self.checkpoint, self.standing, self.hidden / _FINISHED))

    def begin(self, asked: Asked, command: str, charged: Charged | None) -> None:
        """Make it, and write down what was asked and charged."""
        self.hidden.mkdir(mode=0o700, parents=True, exist_ok=True)
        entry, token = (None, None) if charged is None else (charged.entry, charged.token)
        said = {"privet-run": _FORMAT, "asked": asked.to_json(), "command": command, "entry": entry, "token": token}
        self._put(said | {"schema": None, "rows": None, "head": None})

    def found(self) -> tuple[Asked, str, Charged | None]:
        """What a run that was stopped was asked for, its command, and its charge."""
        said = self._read()
        charged = None if said["entry"] is None else Charged(said["entry"], said["token"])
        return Asked.from_json(said["asked"]), said["command"], charged

    def keep(self, name: str, release: Release[Any]) -> None:
        """Keep something small that was released on the way: the schema's text, the number of rows."""
        self._put(self._read() | {name: {"value": release.value, **release_data(release)}})

    def kept(self, name: str) -> Release[Any] | None:
        """What was kept.

        Guarantee: that of the release that was kept; nothing is drawn here.
        """
        found = self._read()[name]
        return None if found is None else release_of(found, found["value"])

    def commit(self, head: str) -> None:
        """Write down that the charge was committed, and the chain's head."""
        self._put(self._read() | {"head": head})

    def committed(self) -> str | None:
        """The chain's head, if the charge was committed."""
        found = self._read()["head"]
        return None if found is None else str(found)

    def finish(self, release: Release[Model], described: Described) -> None:
        """Keep a model that was trained, before anything else is done with it."""
        place = self.hidden / _FINISHED
        place.mkdir(mode=0o700, exist_ok=True)
        store(place, release.value, described)
        put(place / "release.json", json.dumps(release_data(release)), "out", private=True)

    def finished(self) -> Release[Model] | None:
        """The model that was trained before the stop, if it was finished.

        Guarantee: that of the release that was kept; nothing is drawn here.
        """
        place = self.hidden / _FINISHED / "release.json"
        if not place.exists():
            return None
        model, _ = restore(place.parent)
        return release_of(json.loads(place.read_text(encoding="utf-8")), model)

    def clear(self) -> None:
        """Remove it: the run is complete."""
        shutil.rmtree(self.hidden, ignore_errors=True)

    def _put(self, said: dict[str, Any]) -> None:
        put(self.hidden / _STATE, json.dumps(said), "out", private=True)

    def _read(self) -> dict[str, Any]:
        path = self.hidden / _STATE
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            if said["privet-run"] != _FORMAT:
                raise InvalidInput("out", f"is {str(self.folder)!r}, of another version of Privet", "use that version")
        except FileNotFoundError:
            done = (self.folder / "card.json").exists()
            what = "is complete" if done else "is no run that was stopped"
            raise InvalidInput(
                "out", f"is {str(self.folder)!r}, which {what}", "resume a folder of privet train"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, InvalidInput):
                raise
            problem = f"is {str(self.folder)!r}, whose {_HIDDEN}/{_STATE} cannot be read"
            raise InvalidInput("out", problem, "its charge stays; train again in another folder") from None
        return dict(said)


def release_data(release: Release[Any]) -> dict[str, Any]:
    """A release without its value."""
    return {
        "draws": encode(release.draws),
        "unit": encode(release.unit),
        "randomness": release.randomness.value,
        "guarantee": None if release.guarantee is None else encode(release.guarantee),
    }


def release_of(data: dict[str, Any], value: Any) -> Release[Any]:
    """The release of a value that was kept beside it.

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


def place_for(asked: Asked, out: Path | None) -> Path:
    """Where a run goes: as asked, or the first free folder below `runs`."""
    if out is not None:
        return out
    stem = Path(asked.data).name.split(".")[0] or "run"
    place, number = Path("runs") / stem, 1
    while place.exists():
        number += 1
        place = place.with_name(f"{stem}-{number}")
    return place
