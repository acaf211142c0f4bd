"""A private value together with how far one unit can move it: what mechanisms take, and nothing shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.unit import Unit

__all__ = ["Bounded"]

T = TypeVar("T")


@dataclass(frozen=True, repr=False, eq=False)
class Bounded(Generic[T]):
    """A value that has not been released, and how far one unit's data can move it.

    It is made by clippers and counting queries, and refuses to be printed, pickled or written as JSON.

    >>> Bounded(41, l1=1.0, unit=Unit())
    Bounded(<private int>, l1=1.0, unit=one example, add/remove, central)
    """

    value: T
    unit: Unit
    l0: float | None = None
    l1: float | None = None
    l2: float | None = None
    linf: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.unit, Unit):
            raise InvalidInput("unit", f"is a {type(self.unit).__name__}, where a Unit is wanted")
        bounds = {name: getattr(self, name) for name in ("l0", "l1", "l2", "linf")}
        if all(bound is None for bound in bounds.values()):
            raise InvalidInput("l1", "and all other bounds are missing", "clip the value, or state a public bound")
        for name, bound in bounds.items():
            if bound is not None:
                object.__setattr__(self, name, checked.nonnegative(name, bound))

    def __repr__(self) -> str:
        bounds = ", ".join(
            f"{n}={getattr(self, n)}" for n in ("l0", "l1", "l2", "linf") if getattr(self, n) is not None
        )
        return f"Bounded(<private {type(self.value).__name__}>, {bounds}, unit={self.unit})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Bounded value is private and cannot be pickled or copied; release it through a mechanism")

    def to_json(self) -> NoReturn:
        """Always refused: a private value has no JSON."""
        raise TypeError("a Bounded value is private and has no JSON; release it through a mechanism")

    def __getstate__(self) -> Any:
        raise TypeError("a Bounded value is private and cannot be pickled or copied; release it through a mechanism")
