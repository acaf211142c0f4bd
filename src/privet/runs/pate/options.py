"""The options of PATE, in a request and on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from privet.core import InvalidInput, checked
from privet.runs.methods.protocol import MethodOptions

if TYPE_CHECKING:
    from privet.runs.facts import PublicFacts
    from privet.runs.request import TrainRequest

__all__ = ["NAME", "TITLE", "PateOptions", "StudentName", "TeacherName", "pate_options"]

NAME, TITLE = "pate", "PATE"


class TeacherName(StrEnum):
    """Kinds of teachers."""

    RIDGE = "ridge"
    KERNEL = "kernel"
    NETWORK = "network"
    FOREST = "forest"


class StudentName(StrEnum):
    """Kinds of students."""

    AUTO = "auto"
    PROPAGATED = "propagated"
    SUPERVISED = "supervised"
    WEIGHED = "weighed"


@dataclass(frozen=True)
class PateOptions(MethodOptions):
    """The options that only PATE has."""

    teachers: int = 250
    teacher: TeacherName = TeacherName.RIDGE
    student: StudentName = StudentName.AUTO
    questions: int | None = None
    answers: int | None = None
    noise: float | None = None
    threshold: int | None = None
    threshold_noise: float | None = None
    sanitise: bool = False
    """Whether to release what the answers cost these data, with noise."""
    any_cost: bool = False
    """Whether questions and noise, both of which are given, may cost more than ε."""
    beside: tuple[str, ...] = ()
    """Other runs, to be drawn beside this one."""
    jobs: int = 1
    ray: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "teacher", checked.member("teacher", self.teacher, TeacherName))
        object.__setattr__(self, "student", checked.member("student", self.student, StudentName))
        for name in ("teachers", "questions", "answers", "threshold", "jobs"):
            if getattr(self, name) is not None:
                checked.count(name, getattr(self, name))
        for name in ("noise", "threshold_noise"):
            if getattr(self, name) is not None:
                checked.positive(name, getattr(self, name))
        for name in ("answers", "threshold_noise"):
            if self.threshold is None and getattr(self, name) is not None:
                raise InvalidInput(name, "is given without --threshold", "without one every question is answered")
        if self.student is StudentName.WEIGHED and (self.threshold is not None or self.sanitise):
            option = "sanitise" if self.sanitise else "threshold"
            problem = "is given, and the student is weighed: it learns from noisy counts of all questions"
            raise InvalidInput(option, problem, "leave one of them out")

    def student_for(self, facts: PublicFacts) -> StudentName:
        """Return the kind of the student, with `auto` resolved from public facts.

        Args:
            facts: Public facts about the data.
        """
        if self.student is not StudentName.AUTO:
            return self.student
        if facts.shape is not None:
            return StudentName.PROPAGATED
        needs_labels = self.threshold is not None or self.sanitise
        return StudentName.SUPERVISED if needs_labels else StudentName.WEIGHED


def pate_options(request: TrainRequest) -> PateOptions:
    """Return the options of PATE in a request.

    Args:
        request: The request of the run.

    Raises:
        InvalidInput: The request is for another method.
    """
    if not isinstance(request.options, PateOptions):
        raise InvalidInput("method", f"is {request.method}", "use pate")
    return request.options
