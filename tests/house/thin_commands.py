"""The command line parses, calls and prints: it does no arithmetic on arrays, and so imports no numerical package."""

from __future__ import annotations

from pathlib import Path

from tests.house.source import imports, modules

NUMERICAL = ("numpy", "torch")
# Files that still compute something; the list only gets shorter.
EXEMPT: tuple[str, ...] = ()


def numerical_imports(package: Path) -> list[str]:
    """Complaints about files of `cli` that import torch or numpy, in a function or for types alone included."""
    return [
        f"{module.at(node)}: imports `{name}`; compute in a room of the library, and print here"
        for module in modules(package)
        if module.place.startswith("cli/") and module.place not in EXEMPT
        for node, name in imports(module)
        if name.split(".")[0] in NUMERICAL
    ]
