"""`__all__` says what a module offers: no less, no more."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.house.source import Module, dotted, is_public, modules

_TYPE_VARIABLES = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple", "typing.TypeVar", "typing.ParamSpec"})


def exports(package: Path) -> list[str]:
    """Complaints about modules whose `__all__` is absent, not literal, names too much or names too little."""
    return [complaint for module in modules(package) for complaint in _of_module(module, package.name)]


def _of_module(module: Module, root: str) -> Iterator[str]:
    if module.path.name == "__main__.py":
        return
    listed = _listed(module.tree)
    if listed is None:
        yield f"{module.place}: has no literal `__all__`"
        return
    defined = {name for name in _defined(module.tree.body) if is_public(name)}
    imported = dict(_imported(module.tree.body))
    # In a package's `__init__` an import of one of our own names is an offer; elsewhere it is only a use. A name that
    # is imported as itself is offered to other rooms, and is not public.
    between_rooms = {
        alias.asname
        for node in ast.walk(module.tree)
        for alias in getattr(node, "names", ())
        if isinstance(node, ast.ImportFrom) and alias.asname == alias.name
    }
    offered = {name for name, source in imported.items() if source.split(".")[0] in (root, "") and is_public(name)}
    offered -= between_rooms
    for name in sorted(set(listed) & between_rooms):
        yield f"{module.place}: `{name}` is public and for other rooms at once; import it without `as`"
    for name in sorted(set(listed) - set(_defined(module.tree.body)) - set(imported)):
        yield f"{module.place}: `__all__` names `{name}`, which is not defined there"
    for name in sorted((defined | (offered if module.is_package else set())) - set(listed)):
        yield f"{module.place}: `{name}` is public and missing from `__all__`"
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        yield f"{module.place}: `__all__` names `{name}` twice"


def _listed(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and "__all__" in _targets(node):
            if not isinstance(node.value, (ast.List, ast.Tuple)):
                return None
            items = [item.value if isinstance(item, ast.Constant) else None for item in node.value.elts]
            names = [item for item in items if isinstance(item, str)]
            return names if len(names) == len(items) else None
    return None


def _targets(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        yield from (inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name))


def _blocks(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is loaded, those inside `if`, `try` and `with` among them."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
            yield from _blocks(node.body)
            yield from _blocks(getattr(node, "orelse", []))
            yield from _blocks(getattr(node, "finalbody", []))
            for handler in getattr(node, "handlers", []):
                yield from _blocks(handler.body)


def _defined(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in _blocks(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            made_by = dotted(node.value.func) if isinstance(node.value, ast.Call) else ""
            if made_by not in _TYPE_VARIABLES:
                yield from _targets(node)


def _imported(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Each imported name with the module it came from; an empty module for a relative import."""
    for node in _blocks(body):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, "" if node.level else node.module or ""
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], alias.name
