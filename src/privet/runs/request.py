"""What `privet train` was asked for: public things alone, kept with an unfinished run so that it can go on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from privet.core import checked
from privet.core.errors import InvalidInput

_MOST_RUNS = 1000
_LEAST_CANARIES = 100
"""Of a tuned run, on average."""

__all__ = ["FeaturesName", "MethodName", "TrainRequest"]


class MethodName(StrEnum):
    """How a model is made private, in the shell's words."""

    DPSGD = "dp-sgd"
    OUTPUT = "output"
    OBJECTIVE = "objective"
    INPUT = "input"
    NONE = "none"


class FeaturesName(StrEnum):
    """What a model sees of pictures, in the shell's words."""

    AUTO = "auto"
    SCATTERING = "scattering"
    PIXELS = "pixels"


@dataclass(frozen=True)
class TrainRequest:
    """All that was typed."""

    data: str = "digits"
    target: str | None = None
    schema: str | None = None
    epsilon: float = 1.0
    delta: float | None = None
    method: MethodName = MethodName.DPSGD
    compare: tuple[MethodName, ...] = ()
    tune: float | None = None
    model: str = "auto"
    features: FeaturesName = FeaturesName.AUTO
    test: str | None = None
    data_dir: str | None = None
    download: bool = False
    rows: int | None = None
    user: str | None = None
    rows_per_user: int | None = None
    kinds: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()
    clip: float | None = None
    batch_size: int | None = None
    epochs: float | None = None
    learning_rate: float | None = None
    hold_out: float = 0.2
    score_share: float = 0.05
    schema_share: float = 0.1
    ledger: str | None = None
    url: str = "privet-ledger.db"
    seed: int | None = None
    log: tuple[str, ...] = ()
    log_internal: bool = False
    cache: str | None = None
    audit: bool = False
    canaries: int = 1000

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        if self.delta is not None and not 0 < checked.share("delta", self.delta) < 1:
            raise InvalidInput("delta", f"is {self.delta:g}", "give one far below 1/n, such as 1e-5")
        for name in ("score_share", "schema_share"):
            if not 0 <= checked.finite(name, getattr(self, name)) <= 0.5:
                raise InvalidInput(name, f"is {getattr(self, name):g}", "give a part of ε between 0 and 0.5")
        if not 0 < checked.finite("hold_out", self.hold_out) < 1:
            raise InvalidInput("hold_out", f"is {self.hold_out:g}", "hold out a part between 0 and 1, such as 0.2")
        for name in ("clip", "epochs", "learning_rate"):
            if getattr(self, name) is not None:
                checked.positive(name, getattr(self, name))
        for name in ("rows", "rows_per_user", "batch_size"):
            if getattr(self, name) is not None:
                checked.count(name, getattr(self, name))
        checked.count("canaries", self.canaries, least=_LEAST_CANARIES)
        if not self.audit and self.canaries != TrainRequest.canaries:
            raise InvalidInput("canaries", "is given without --audit", "add it, or leave both out")
        if self.method is MethodName.NONE:
            raise InvalidInput("method", "is none, which has no guarantee", "use it as --compare none")
        if len(set(self.compare)) < len(self.compare) or self.method in self.compare:
            raise InvalidInput("compare", "names a method twice", f"{self.method.value} is trained anyway")

        if self.tune is not None and not 1 < checked.finite("tune", self.tune) <= _MOST_RUNS:
            raise InvalidInput("tune", f"is {self.tune:g}", f"give how many runs on average: 2 to {_MOST_RUNS}")
        if self.tune is not None and self.method is not MethodName.DPSGD:
            raise InvalidInput("tune", f"is given, and the method is {self.method.value}", "tune dp-sgd")
        if self.audit and (self.method is not MethodName.DPSGD or self.tune is not None):
            problem = "is given, and canaries are for one run of dp-sgd"
            raise InvalidInput("audit", problem, "leave it out, or use --method dp-sgd without --tune")
        if MethodName.INPUT in self.compare:
            problem = "names input, whose trust is local: it protects another unit and has a card of its own"
            raise InvalidInput("compare", problem, "train it with --method input, and use: privet report compare")

    @property
    def private(self) -> tuple[MethodName, ...]:
        """The methods that cost privacy, the main one first."""
        return (self.method, *(each for each in self.compare if each is not MethodName.NONE))

    @property
    def title(self) -> str:
        """What the data set is called on the page."""
        return Path(self.data).name

    def to_json(self) -> str:
        """For an unfinished run's folder."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> TrainRequest:
        """The inverse."""
        said: dict[str, Any] = json.loads(text)
        for name in ("compare", "log", "classes"):
            said[name] = tuple(said[name])
        said["kinds"] = tuple((column, kind) for column, kind in said["kinds"])
        said["method"] = MethodName(said["method"])
        said["compare"] = tuple(map(MethodName, said["compare"]))
        said["features"] = FeaturesName(said["features"])
        return TrainRequest(**said)

    def differs(self, other: TrainRequest) -> str | None:
        """The first field in which another one differs."""
        return next((each.name for each in fields(self) if getattr(self, each.name) != getattr(other, each.name)), None)
