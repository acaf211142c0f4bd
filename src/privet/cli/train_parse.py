"""From the words that were typed to what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from privet.core.errors import InvalidInput
from privet.runs.request import FeaturesName, TrainRequest

__all__ = ["asked_of"]

E = TypeVar("E", bound=StrEnum)
_NOT_OF_THE_RUN = ("out", "resume", "yes")


def asked_of(typed: Mapping[str, Any]) -> TrainRequest:
    """What was asked for; of the parameters of `privet train`, those that say where and how it runs are left out."""
    said = {name: _plain(value) for name, value in typed.items() if name not in _NOT_OF_THE_RUN}
    kinds = said.pop("kind")
    said["compare"] = _listed(said["compare"])
    said["features"] = _word("features", said["features"], FeaturesName)
    said["classes"], said["log"] = _listed(said["classes"]), tuple(said["log"] or ())
    return TrainRequest(**said, kinds=tuple(_pair(each) for each in kinds or ()))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _word(argument: str, text: str, kind: type[E]) -> E:
    known = [each.value for each in kind]
    if text not in known:
        raise InvalidInput(argument, f"is {text!r}", f"use one of: {', '.join(known)}")
    return kind(text)


def _pair(text: str) -> tuple[str, str]:
    column, equals, kind = text.rpartition("=")
    if not equals or not column:
        raise InvalidInput("kind", f"is {text!r}", "write COLUMN=KIND, such as age=number")
    return column, kind
