"""A private value together with how far one unit can move it: what mechanisms take, and nothing shows."""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.unit import Unit

__all__ = ["Bounded"]

T = TypeVar("T")
_BOUNDS = ("l0", "l1", "l2", "linf")


class Bounded(Generic[T]):
    """A value that has not been released, and how far one unit's data can move it.

    It is made by clippers and counting queries, and refuses to be printed, pickled, changed or written as JSON. It is
    no dataclass and has no `__dict__`, so that the usual serializers find nothing. Two promises about the value let
    mechanisms add less noise, and one that was made for either takes no value without it: `whole`, that all its numbers
    are whole whatever the data, and `monotone`, that whoever comes makes none of them smaller.

    >>> Bounded(41, l1=1.0, unit=Unit())
    Bounded(<private int>, l1=1.0, unit=one example, add/remove, central)
    """

    __slots__ = ("l0", "l1", "l2", "linf", "monotone", "unit", "value", "whole")

    value: T
    unit: Unit
    l0: float | None
    l1: float | None
    l2: float | None
    linf: float | None
    whole: bool
    monotone: bool

    def __init__(
        self,
        value: T,
        unit: Unit,
        *,
        l0: float | None = None,
        l1: float | None = None,
        l2: float | None = None,
        linf: float | None = None,
        whole: bool = False,
        monotone: bool = False,
    ) -> None:
        if not isinstance(unit, Unit):
            raise InvalidInput("unit", f"is a {type(unit).__name__}, where a Unit is wanted")
        bounds = dict(zip(_BOUNDS, (l0, l1, l2, linf), strict=True))
        if all(bound is None for bound in bounds.values()):
            raise InvalidInput("l1", "and all other bounds are missing", "clip the value, or state a public bound")
        for name, bound in bounds.items():
            object.__setattr__(self, name, None if bound is None else checked.nonnegative(name, bound))
        for name, said in (("whole", whole), ("monotone", monotone)):
            if not isinstance(said, bool):
                raise InvalidInput(name, f"is a {type(said).__name__}, where True or False is wanted")
            object.__setattr__(self, name, said)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Bounded value is frozen; {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Bounded value is frozen; {name} cannot be deleted")

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={getattr(self, name)}" for name in _BOUNDS if getattr(self, name) is not None)
        return f"Bounded(<private {type(self.value).__name__}>, {bounds}, unit={self.unit})"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Bounded value is private and cannot be pickled or copied; release it through a mechanism")

    def __getstate__(self) -> NoReturn:
        # Every object has one since Python 3.11, which would hand out the value.
        raise TypeError("a Bounded value is private and has no state to take out; release it through a mechanism")

    def to_json(self) -> NoReturn:
        """Raise an error: a private value has no JSON."""
        raise TypeError("a Bounded value is private and has no JSON; release it through a mechanism")
