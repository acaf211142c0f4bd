"""Reading a tree of Python files without importing it: the ground that the checks in this directory stand on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of a package: where it is, what it is called, and its syntax tree."""

    path: Path
    place: str
    """The path below the package's directory, for complaints: `core/unit.py`."""
    name: str
    """The dotted name: `privet.core.unit`; a package's `__init__.py` has the package's own name."""
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    def at(self, node: ast.AST) -> str:
        """`core/unit.py:12`, for the beginning of a complaint."""
        return f"{self.place}:{getattr(node, 'lineno', 1)}"


def modules(package: Path) -> Iterator[Module]:
    """Every Python file below a package's directory, in order of their paths."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        yield Module(path, path.relative_to(package).as_posix(), name, tree)


def imports(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Every absolute dotted name that a module imports, wherever in the file: functions and TYPE_CHECKING included.

    `from a.b import c` gives `a.b.c`, because `c` may be a module. `import_module("a.b")` with a literal name counts.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            prefix = _absolute(module, node.level, node.module or "")
            for alias in node.names:
                yield node, f"{prefix}.{alias.name}"
        elif isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in ("import_module", "__import__"):
            literal = node.args[0] if node.args else None
            if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                text = literal.value
                level = len(text) - len(text.lstrip("."))
                yield node, _absolute(module, level, text.lstrip("."))


def _absolute(module: Module, level: int, name: str) -> str:
    if level == 0:
        return name
    parts = module.name.split(".")
    keep = parts[: len(parts) - level + (1 if module.is_package else 0)]
    return ".".join([*keep, name] if name else keep)


def dotted(node: ast.AST) -> str:
    """`np.random.rand` for the expression of that shape; an empty text for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        left = dotted(node.value)
        return f"{left}.{node.attr}" if left else ""
    return ""


def aliases(module: Module) -> dict[str, str]:
    """What each imported name stands for: `import numpy as np` gives `np → numpy`."""
    found: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def resolved(node: ast.AST, names: dict[str, str]) -> str:
    """The dotted name of an expression with its first part replaced by what was imported under that name."""
    head, _, rest = dotted(node).partition(".")
    full = names.get(head, head)
    return f"{full}.{rest}" if rest else full


def public_definitions(module: Module) -> Iterator[tuple[ast.ClassDef | None, Function | ast.ClassDef]]:
    """Public functions and classes at the top of a module, and the methods of public classes, each with its class."""
    for node in module.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_public(node.name):
            yield None, node
        elif isinstance(node, ast.ClassDef) and is_public(node.name):
            yield None, node
            for inner in node.body:
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield node, inner


def is_public(name: str) -> bool:
    """Whether a name is meant for others: it does not begin with an underscore."""
    return not name.startswith("_")
