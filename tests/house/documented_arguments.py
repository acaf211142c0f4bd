"""Public functions say what each of their arguments is."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


def undocumented(room: str) -> list[str]:
    """Complaints about functions and methods that a room exports and whose docstring lacks an argument."""
    module = importlib.import_module(room)
    return [
        f"{room}.{name}: `Args` does not describe {', '.join(missing)}"
        for name, function in _functions(module)
        if (missing := missing_arguments(function))
    ]


def missing_arguments(function: Callable[..., Any]) -> list[str]:
    """Return the parameters that have no entry of their own in the section `Args` of a function's docstring."""
    section = (inspect.getdoc(function) or "").partition("Args:\n")[2]
    entries = re.findall(r"^ {4}\*{0,2}(\w+): ", section, re.MULTILINE)
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    return [name for name in names if name not in entries]


def _functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and value.__module__.startswith("privet."):
            for inner, member in vars(value).items():
                plain = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
                # A function may also be the default of a field.
                is_own = inspect.isfunction(plain) and plain.__qualname__ == f"{value.__qualname__}.{inner}"
                if is_own and not inner.startswith("_"):
                    yield f"{name}.{inner}", plain
