"""What Privet raises. Each error says what is wrong, why, and what to do; none of them carries private data."""

from __future__ import annotations

import copyreg
from typing import Any

__all__ = [
    "BudgetExceeded",
    "InvalidInput",
    "LedgerError",
    "MissingExtra",
    "NotProven",
    "PrivetError",
    "reason_of",
]


class PrivetError(Exception):
    """The root of every error that Privet raises on purpose.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(InvalidInput("delta", "is 2.0", "use 1e-5"))).advice
    'use 1e-5'
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # An error from another process is restored as it was, whatever arguments its __init__ takes.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InvalidInput(PrivetError, ValueError):
    """An argument that cannot be accepted; names the argument.

    >>> str(InvalidInput("delta", "is 2.0, which is not below 1", "use a value such as 1e-5"))
    'delta is 2.0, which is not below 1; use a value such as 1e-5'
    """

    def __init__(self, argument: str, problem: str, advice: str = "") -> None:
        self.argument, self.problem, self.advice = argument, problem, advice
        super().__init__(f"{argument} {problem}" + (f"; {advice}" if advice else ""))


class NotProven(PrivetError):
    """No theorem covers this combination, so no guarantee is printed for it."""


class BudgetExceeded(PrivetError):
    """A budget refused a charge; nothing was drawn and nothing was spent."""


class LedgerError(PrivetError):
    """The ledger cannot be read, trusted or written; it is left as it was."""


class MissingExtra(PrivetError, ImportError):
    """An optional package is absent; the message says what to install."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'privet[{extra}]'")


def reason_of(error: OSError) -> str:
    """Return why the operating system refused something, in lower case for the middle of a sentence.

    >>> reason_of(FileNotFoundError(2, "No such file or directory"))
    'no such file or directory'
    """
    return (error.strerror or "unknown reason").lower()
