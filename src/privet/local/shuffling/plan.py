"""The public plan of a batch: who mixes it, how many reports it needs, and what it costs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from privet.core import (
    Guarantee,
    InvalidInput,
    Neighbours,
    Pure,
    RandomizedResponse,
    Shuffled,
    Trust,
    Unit,
    Whose,
    checked,
)
from privet.local.questionnaire import (
    VERSION,
    Questionnaire,
    read_questionnaire,
    read_toml,
    require_keys,
    tables_of,
)
from privet.local.shuffling.onion import length_of, public_key
from privet.mechanisms import usable

__all__ = ["ONE_IN_A_CROWD", "MixPlan", "Stop", "read_plan"]

ONE_IN_A_CROWD = Unit(whose=Whose.USER, neighbours=Neighbours.REPLACE, trust=Trust.SHUFFLED)
"""One person's answer becomes any other one, and whoever mixes the reports is trusted to do so."""
_MOST_PAYLOAD, _MOST_REPORTS, _MOST_SERVERS = 1 << 16, 10**7, 16
_NEEDED = ("privet", "batch", "epsilon", "delta", "minimum", "server", "collector")
_ALLOWED = (*_NEEDED, "categories", "close-at", "dishonest", "payload", "survey")
_STOP = ("address", "key")


@dataclass(frozen=True)
class Stop:
    """One stop on the way: where it listens, and its public key."""

    address: str
    key: str

    def __post_init__(self) -> None:
        _reachable(self.address)
        public_key(self.key)
        object.__setattr__(self, "key", self.key.strip().lower())

    @property
    def where(self) -> tuple[str, int]:
        """Host and port."""
        return _reachable(self.address)


def _reachable(address: str) -> tuple[str, int]:
    """The host and the port that an address names."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError):
        host = port = None
    if not host or not port or parts.scheme != "http" or parts.path not in ("", "/"):
        raise InvalidInput("address", f"is {address!r}", "give a URL such as http://192.168.1.5:8101")
    return host, port


@dataclass(frozen=True)
class MixPlan:
    """What everybody must know and agree on before the first report is sent."""

    batch: str
    epsilon: float
    """What each report is worth by itself."""
    delta: float
    minimum: int
    """With fewer reports than these left, every stop refuses the batch."""
    servers: tuple[Stop, ...]
    collector: Stop
    categories: int = 0
    """K, if each report is one K-ary randomized response; 0, if all that is known is its ε."""
    close_at: int = 0
    """So many reports close the batch; `minimum` of them if it is left out."""
    dishonest: int = 0
    """How many of the reports may have been made up, or be known to an attacker."""
    payload: int = 512
    """The longest report, in bytes; all are padded to this."""
    survey: Questionnaire | None = None
    """The questionnaire whose reports are sent, all answers of one person in each; no other reports are taken then."""

    def __post_init__(self) -> None:
        checked.text("batch", self.batch)
        object.__setattr__(self, "epsilon", usable(self.epsilon))
        object.__setattr__(self, "delta", checked.share("delta", self.delta))
        object.__setattr__(self, "servers", tuple(self.servers))
        checked.count("minimum", self.minimum, 2)
        object.__setattr__(self, "close_at", self.close_at or self.minimum)
        if not self.minimum <= checked.count("close_at", self.close_at) <= _MOST_REPORTS:
            raise InvalidInput(
                "close_at", f"is {self.close_at}", f"give {self.minimum} (the minimum) to {_MOST_REPORTS}"
            )
        if checked.count("dishonest", self.dishonest, 0) >= self.minimum:
            raise InvalidInput("dishonest", f"is {self.dishonest}, and nobody is left of {self.minimum}", "expect more")
        if checked.count("categories", self.categories, 0) == 1:
            raise InvalidInput("categories", "is 1, which is no question", "give 2 or more, or leave it out")
        if checked.count("payload", self.payload) > _MOST_PAYLOAD:
            raise InvalidInput("payload", f"is {self.payload}", f"give {_MOST_PAYLOAD} bytes or fewer")
        if not 2 <= len(self.servers) <= _MOST_SERVERS:
            advice = "name two or more, run by people who would not tell each other their orders"
            raise InvalidInput("server", f"is there {len(self.servers)} times", advice)
        if len({stop.key for stop in self.stops}) < len(self.stops):
            raise InvalidInput("key", "is the same at two stops", "give each server and the collector its own")
        if len({stop.where for stop in self.stops}) < len(self.stops):
            raise InvalidInput("address", "is the same at two stops", "give each server and the collector its own")
        if self.survey is not None and self.survey.epsilon != self.epsilon:
            problem = (
                f"is {self.epsilon:g}, and one report of the survey {self.survey.title!r} has {self.survey.epsilon:g}"
            )
            raise InvalidInput(
                "epsilon", problem, "write the ε of the survey, which is that of all its answers together"
            )
        if self.survey is not None and self.categories:
            raise InvalidInput("categories", "are there beside a survey, which says its own", "leave them out")

    @property
    def stops(self) -> tuple[Stop, ...]:
        """The servers in their order, and the collector."""
        return (*self.servers, self.collector)

    @property
    def honest(self) -> int:
        """The number of honest reports that the price rests on."""
        return self.minimum - self.dishonest

    @property
    def event(self) -> Shuffled:
        """What the collector gets to see of everybody's answers."""
        one = RandomizedResponse(self.epsilon, self.categories) if self.categories else None
        if self.survey is not None and isinstance(self.survey.event, RandomizedResponse):
            one = self.survey.event  # a single question
        return Shuffled(one or Pure(self.epsilon, Neighbours.REPLACE), self.honest)

    @property
    def guarantee(self) -> Guarantee:
        """What that costs each of them, with everything that it rests on; known before any report is sent."""
        from privet import accounting

        return accounting.epsilon(self.event, self.delta, unit=ONE_IN_A_CROWD)

    @property
    def name(self) -> bytes:
        """What every layer of every report is bound to: it changes with every word and number of the plan."""
        stops = [[stop.address, stop.key] for stop in self.stops]
        survey = None if self.survey is None else self.survey.digest
        numbers = [self.epsilon, self.delta, self.minimum, self.close_at, self.dishonest, self.categories, self.payload]
        return hashlib.sha256(json.dumps([VERSION, self.batch, numbers, stops, survey]).encode()).digest()

    def length(self, place: int) -> int:
        """Return how long every layer is that arrives at a stop.

        Args:
            place: The number of the stop, from 0.
        """
        return length_of(self.payload, len(self.stops) - place)

    def place_of(self, key: str) -> int:
        """Return which stop has this public key.

        Args:
            key: The public key.

        Raises:
            InvalidInput: No stop has it.
        """
        keys = [stop.key for stop in self.stops]
        if key not in keys:
            raise InvalidInput("key", "is that of no stop in the plan", "put its public half into the plan")
        return keys.index(key)


def read_plan(path: Path) -> MixPlan:
    """Read a plan from its TOML file; the file of its survey, if it has one, is looked for beside it.

    Args:
        path: The file.

    Raises:
        InvalidInput: A file cannot be read, or is not a plan.
    """
    return read_toml(path, "plan", lambda top: _parsed(top, path.parent))


def _parsed(top: Mapping[str, Any], folder: Path) -> MixPlan:
    servers = tables_of(top, "server", _NEEDED, _ALLOWED, "a plan")
    return MixPlan(
        batch=top["batch"],
        epsilon=top["epsilon"],
        delta=top["delta"],
        minimum=top["minimum"],
        servers=tuple(map(_stop, servers)),
        collector=_stop(top["collector"]),
        categories=top.get("categories", 0),
        close_at=top.get("close-at", 0),
        dishonest=top.get("dishonest", 0),
        payload=top.get("payload", 512),
        survey=None if "survey" not in top else read_questionnaire(folder / checked.text("survey", top["survey"])),
    )


def _stop(table: object) -> Stop:
    require_keys(table if isinstance(table, dict) else {}, _STOP, "a server or collector")
    if not isinstance(table, dict) or len(table) < len(_STOP):
        raise InvalidInput("server", "or collector is no table of an address and a key", "give it both, and no more")
    return Stop(table["address"], table["key"])
