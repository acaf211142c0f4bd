"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_attributes"]


def lazy_attributes(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package whose import must stay cheap.

    Args:
        package: The name of the package.
        modules: For each module inside the package, the names that it defines. Names under "" are modules themselves.

    Raises:
        AttributeError: By the function that is returned, for a name that no module defines.

    >>> lazy_attributes("json", {"decoder": ("JSONDecoder",)})("JSONDecoder").__name__
    'JSONDecoder'
    """
    sources = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not sources[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{sources[name]}"), name)

    return load
