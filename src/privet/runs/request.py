"""The request for a training run: public options only, stored with the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.core import InvalidInput, checked
from privet.runs.methods.protocol import MethodOptions
from privet.runs.methods.registry import METHODS, method_named

if TYPE_CHECKING:
    from privet.runs.facts import PublicFacts

__all__ = ["FeaturesName", "TrainRequest"]

_MOST_RUNS = 1000
"""Largest average number of runs of a tuned run."""
_LEAST_CANARIES = 100
_LATER = ("public", "votes")
"""Options that earlier versions did not have."""


class FeaturesName(StrEnum):
    """Features that a model uses of images."""

    AUTO = "auto"
    SCATTERING = "scattering"
    PIXELS = "pixels"


@dataclass(frozen=True)
class TrainRequest:
    """The options of a training run as the user gives them; nothing here is derived."""

    data: str = "digits"
    target: str | None = None
    schema: str | None = None
    epsilon: float = 1.0
    delta: float | None = None
    method: str = "dp-sgd"
    compare: tuple[str, ...] = ()
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
    budget: str | None = None
    """The budget that is charged."""
    ledger: str = "privet-ledger.db"
    """The file or URL of the ledger."""
    seed: int | None = None
    log: tuple[str, ...] = ()
    log_internal: bool = False
    cache: str | None = None
    audit: bool = False
    canaries: int = 1000
    public: str | None = None
    """Unlabeled public rows, for methods that need them."""
    votes: tuple[str, ...] = ()
    """Vote files, where teachers are trained elsewhere and there are no private rows here; `data` is then empty."""
    options: MethodOptions | None = None
    """The options that only this method has, of its type `Method.options`."""

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        object.__setattr__(self, "features", checked.member("features", self.features, FeaturesName))
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
        self._check_methods()

    def _check_methods(self) -> None:
        method = method_named(self.method)
        compared = [method_named(name, "compare") for name in self.compare]
        if not method.is_private:
            problem = f"is {method.name}, which has no guarantee"
            raise InvalidInput("method", problem, f"use it as --compare {method.name}")
        self._check_inputs()
        if len(set(self.compare)) < len(self.compare) or self.method in self.compare:
            raise InvalidInput("compare", "names a method twice", f"{self.method} is trained anyway")
        if self.tune is not None and not 1 < checked.finite("tune", self.tune) <= _MOST_RUNS:
            raise InvalidInput("tune", f"is {self.tune:g}", f"give how many runs on average: 2 to {_MOST_RUNS}")
        if self.tune is not None and method.variants is None:
            raise InvalidInput("tune", f"is given, and the method is {self.method}", f"tune {_tunable()}")
        if self.audit and (not method.takes_canaries or self.tune is not None):
            problem = "is given, and canaries are for one run of dp-sgd"
            raise InvalidInput("audit", problem, "leave it out, or use --method dp-sgd without --tune")
        for other in compared:
            if not other.has_central_trust:
                problem = f"names {other.name}, whose trust is local: it protects another unit and has its own card"
                advice = f"train it with --method {other.name}, and use: privet report compare"
                raise InvalidInput("compare", problem, advice)

    def _check_inputs(self) -> None:
        method = METHODS[self.method]
        if self.options is None and method.options is not None:
            object.__setattr__(self, "options", method.options())
        if type(self.options) is not (method.options or type(None)):
            raise InvalidInput("options", f"are not those of {self.method}", "leave them out")
        asking = [name for name, each in METHODS.items() if each.asks_public_rows]
        for name in ("public", "votes"):
            if getattr(self, name) and self.method not in asking:
                problem = f"is given, and {self.method} asks nothing about public rows"
                raise InvalidInput(name, problem, f'use method="{asking[0]}"')
        if self.compare and {self.method, *self.compare} & set(asking):
            problem = f"names methods that read other rows than {' or '.join(asking)} does"
            raise InvalidInput("compare", problem, "train them by themselves, and use: privet report compare")
        if len({str(Path(path).resolve()) for path in self.votes}) < len(self.votes):
            raise InvalidInput("votes", "names one file twice", "name each once")

    @property
    def private_methods(self) -> tuple[str, ...]:
        """The methods that cost privacy, the main one first."""
        return (self.method, *(name for name in self.compare if METHODS[name].is_private))

    def training_share(self, facts: PublicFacts) -> float:
        """Return the fraction of the private rows to train on; the rest is held out for a private score.

        Args:
            facts: Public facts about the data.

        Returns:
            1 where nothing is held out; otherwise 1 − `hold_out`.
        """
        if not METHODS[self.method].has_central_trust:
            return 1.0  # nobody may see rows as they are, not even to score a model
        return 1.0 if facts.has_test_rows or not facts.can_hold_out or not self.score_share else 1 - self.hold_out

    @property
    def title(self) -> str:
        """Name of the data set on the page."""
        return Path(self.data).name if self.data else f"{len(self.votes)} silos"

    def values(self) -> dict[str, Any]:
        """Return all options by name, those of the method included."""
        return {
            name: value
            for name, value in (asdict(self) | ({} if self.options is None else asdict(self.options))).items()
            if name != "options"
        }

    @staticmethod
    def of(values: Mapping[str, Any]) -> TrainRequest:
        """Return the request that has these options; all others have the defaults of the method.

        Args:
            values: Options by name, those of the method included.

        Raises:
            InvalidInput: An option is unknown, or its value is wrong.
        """
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        method = method_named(values.get("method", TrainRequest.method))
        own = set() if method.options is None else {field.name for field in fields(method.options)}
        names = {field.name for field in fields(TrainRequest)} - {"options"}
        if unknown := sorted(set(values) - names - own):
            known = ", ".join(sorted(names | own))
            raise InvalidInput("options", f"has {unknown[0]!r}, which is unknown", f"use some of: {known}")
        options = None if method.options is None else method.options(**{name: values[name] for name in own & {*values}})
        given = {name: values[name] for name in values if name in names}
        return TrainRequest(**{"hold_out": method.hold_out} | given, options=options)

    def to_json(self) -> str:
        """Return the request as JSON, for the run directory."""
        # Newer options are left out where they are not given: the hash of an older run's request must not change.
        return json.dumps({name: value for name, value in self.values().items() if value or name not in _LATER})

    @staticmethod
    def from_json(text: str) -> TrainRequest:
        """Return the request that `to_json` wrote.

        Args:
            text: The JSON text.

        Raises:
            InvalidInput: It is the request of a PATE run of an earlier version.
        """
        values: dict[str, Any] = json.loads(text)
        if "method" not in values:
            problem = "holds a run of PATE that an earlier version of Privet began"
            raise InvalidInput("resume", problem, "resume it with that version; or train anew, which costs anew")
        if "url" in values:  # written by an earlier version, which called the budget's name the ledger
            values["budget"], values["ledger"] = values["ledger"], values.pop("url")
        values["kinds"] = [tuple(pair) for pair in values["kinds"]]
        return TrainRequest.of(values)


def _tunable() -> str:
    return " or ".join(method.name for method in METHODS.values() if method.variants is not None)
