"""How many units have each key, where the keys themselves are private."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privet.core import Bounded, InvalidInput, Unit, Whose, checked
from privet.mechanisms.contribution import Chunk, Clipper, name_of, times
from privet.mechanisms.reach import Reach, replaces

__all__ = ["Keys", "KeysTally"]


@dataclass(frozen=True)
class Keys(Clipper[dict[Any, int]]):
    """Counts by key, in which one unit counts once for each of its first `keys` keys.

    The keys are not public: which of them may be shown is what partition selection decides.

    Guarantee: a unit that comes or goes moves at most `keys` counts by 1 each; one that is replaced twice as many. A
    missing key is the key None; what cannot be a key is its text; nothing raises.

    >>> Keys()(["b", "a", "b"])
    Bounded(<private dict>, l0=1.0, l1=1.0, l2=1.0, linf=1.0, unit=one example, add/remove, central)
    """

    unit: Unit = Unit()
    keys: int = 1
    """With how many keys one user counts; a row has one key."""

    def __post_init__(self) -> None:
        checked.count("keys", self.keys)
        if self.unit.records > 1:
            problem = f"is {self.unit}, and several rows of one unit may have one key"
            raise InvalidInput("unit", problem, "protect users and give their ids")
        times(self.unit, self.keys)

    @property
    def reach(self) -> Reach:
        """One count for each key of a unit; both sets of keys when it is replaced."""
        replaced = replaces(self.unit)
        moved = self.keys * (2 if replaced else 1)
        return Reach(self.unit, l0=float(moved), linf=1.0, dimension=moved, whole=True, monotone=not replaced)

    def start(self) -> KeysTally:
        """Start counts to which chunks of rows are added."""
        return KeysTally(self)


@dataclass
class KeysTally:
    """Counts so far, and the keys of each unit that were counted."""

    clip: Keys
    counts: dict[Any, int] = field(default_factory=dict, repr=False)
    mine: dict[Any, set[Any]] = field(default_factory=dict, repr=False)

    def add(self, keys: Chunk, users: Chunk | None = None) -> None:
        """Add rows."""
        names = [name_of(key) for key in (keys.tolist() if isinstance(keys, np.ndarray) else keys)]
        if self.clip.unit.whose is Whose.EXAMPLE:
            if users is not None:
                raise InvalidInput("users", f"are given, and the unit is {self.clip.unit}", "leave them out")
            for name in names:
                self.counts[name] = self.counts.get(name, 0) + 1
            return
        if users is None or len(users) != len(names):
            problem = f"are missing or not as many as the rows, and the unit is {self.clip.unit}"
            raise InvalidInput("users", problem, "say whose each row is")
        owners = [name_of(user) for user in (users.tolist() if isinstance(users, np.ndarray) else users)]
        for name, owner in zip(names, owners, strict=True):
            seen = self.mine.setdefault(owner, set())
            if name not in seen and len(seen) < self.clip.keys:
                seen.add(name)
                self.counts[name] = self.counts.get(name, 0) + 1

    def bounded(self) -> Bounded[dict[Any, int]]:
        """Return the counts, for partition selection."""
        return self.clip.reach.of(dict(self.counts))
