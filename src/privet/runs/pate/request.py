"""What `privet pate` was asked for: public things alone, kept with an unfinished run so that it can go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from privet.core import checked
from privet.core.errors import InvalidInput

__all__ = ["PateRequest", "StudentName", "TeacherName", "parse_pate_request"]

E = TypeVar("E", bound=StrEnum)
_OF_THE_CALL = ("out", "resume")


class TeacherName(StrEnum):
    """What a teacher is, in the shell's words."""

    RIDGE = "ridge"
    KERNEL = "kernel"
    NETWORK = "network"
    FOREST = "forest"


class StudentName(StrEnum):
    """How a student learns, in the shell's words."""

    AUTO = "auto"
    PROPAGATED = "propagated"
    SUPERVISED = "supervised"
    WEIGHED = "weighed"


@dataclass(frozen=True)
class PateRequest:
    """All that was typed."""

    data: str = ""
    votes: tuple[str, ...] = ()
    """Files of votes, where teachers are elsewhere."""
    public: str | None = None
    target: str | None = None
    schema: str | None = None
    test: str | None = None
    user: str | None = None
    classes: tuple[str, ...] = ()
    data_dir: str | None = None
    download: bool = False
    rows: int | None = None
    teachers: int = 250
    teacher: TeacherName = TeacherName.RIDGE
    student: StudentName = StudentName.AUTO
    epsilon: float | None = None
    delta: float | None = None
    questions: int | None = None
    answers: int | None = None
    noise: float | None = None
    threshold: int | None = None
    threshold_noise: float | None = None
    sanitise: bool = False
    hold_out: float = 0.1
    score_share: float = 0.05
    beside: tuple[str, ...] = ()
    budget: str | None = None
    ledger: str = "privet-ledger.db"
    jobs: int = 1
    ray: str | None = None
    cache: str | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            checked.positive("epsilon", self.epsilon)
        if self.delta is not None and not 0 < checked.share("delta", self.delta) < 1:
            raise InvalidInput("delta", f"is {self.delta:g}", "give one far below 1/n, such as 1e-5")
        checked.count("teachers", self.teachers)
        for name in ("rows", "questions", "answers", "threshold", "jobs"):
            if getattr(self, name) is not None:
                checked.count(name, getattr(self, name))
        for name in ("noise", "threshold_noise"):
            if getattr(self, name) is not None:
                checked.positive(name, getattr(self, name))
        if not 0 <= checked.finite("score_share", self.score_share) <= 0.5:
            raise InvalidInput("score_share", f"is {self.score_share:g}", "give a part of ε between 0 and 0.5")
        if not 0 < checked.finite("hold_out", self.hold_out) < 1:
            raise InvalidInput("hold_out", f"is {self.hold_out:g}", "hold out a part between 0 and 1, such as 0.1")
        if self.threshold is None:
            for name in ("answers", "threshold_noise"):
                if getattr(self, name) is not None:
                    raise InvalidInput(name, "is given without --threshold", "without one every question is answered")
        if self.student is StudentName.WEIGHED and (self.threshold is not None or self.sanitise):
            option = "sanitise" if self.sanitise else "threshold"
            problem = "is given, and the student is weighed: it learns from noisy counts of all questions"
            raise InvalidInput(option, problem, "leave one of them out")
        if len({str(Path(each).resolve()) for each in self.votes}) < len(self.votes):
            raise InvalidInput("votes", "names one file twice", "name each once")

    @property
    def title(self) -> str:
        """What the data set is called on the page."""
        return Path(self.data).name if self.data else f"{len(self.votes)} silos"

    def taught(self, *, pictures: bool) -> StudentName:
        """How the student learns, with `auto` decided by public things."""
        if self.student is not StudentName.AUTO:
            return self.student
        if pictures:
            return StudentName.PROPAGATED
        labels = self.threshold is not None or self.sanitise
        return StudentName.SUPERVISED if labels else StudentName.WEIGHED

    def to_json(self) -> str:
        """For an unfinished run's folder."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> PateRequest:
        """The inverse."""
        said: dict[str, Any] = json.loads(text)
        for name in ("votes", "classes", "beside"):
            said[name] = tuple(said[name])
        if "url" in said:  # written by an earlier version, which called the budget's name the ledger
            said["budget"], said["ledger"] = said["ledger"], said.pop("url")
        return PateRequest(**said | {"teacher": TeacherName(said["teacher"]), "student": StudentName(said["student"])})


def parse_pate_request(typed: Mapping[str, Any]) -> PateRequest:
    """What was asked for; of a command's parameters, those that say where and how it runs are left out."""
    said = {name: _plain(value) for name, value in typed.items() if name not in _OF_THE_CALL}
    for name, kind in (("teacher", TeacherName), ("student", StudentName)):
        if name in said:
            said[name] = _word(name, said[name], kind)
    if "classes" in said:
        said["classes"] = tuple(part.strip() for part in (said["classes"] or "").split(",") if part.strip())
    return PateRequest(**said)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return str(value) if isinstance(value, Path) else value


def _word(argument: str, text: str, kind: type[E]) -> E:
    known = [each.value for each in kind]
    if text not in known:
        raise InvalidInput(argument, f"is {text!r}", f"use one of: {', '.join(known)}")
    return kind(text)
