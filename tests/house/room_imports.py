"""How modules import each other: through packages across rooms, without cycles, and never by names in strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.rooms import FLOOR, FRONT_DOOR
from tests.house.source import Module, modules

_ROOM_PATH = re.compile(r"privet\.([a-z_]+)(\.\w+)*(:\w+)?")


def through_packages(package: Path) -> list[str]:
    """Complaints about names that are taken from a module inside another room, and not from a package that offers them.

    A package offers what its `__all__` lists, and what its `__init__` imports as itself (`from … import name as name`).
    The latter is for other rooms and is not part of the public interface.
    """
    trees = {module.name: module for module in modules(package)}
    complaints: list[str] = []
    for module in trees.values():
        if module.place in FRONT_DOOR:
            continue
        room = Path(module.place).parts[0]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                source, names = node.module or "", [alias.name for alias in node.names]
            elif isinstance(node, ast.Import):
                source, names = next((a.name for a in node.names if a.name.startswith(f"{package.name}.")), ""), []
            else:
                continue
            parts = source.split(".")
            if len(parts) < 2 or parts[0] != package.name or parts[1] == room:
                continue
            target = trees.get(source)
            if target is None or not target.is_package:
                complaints.append(f"{module.at(node)}: imports `{source}`, a module inside `{parts[1]}`")
                continue
            offers = offered(target)
            complaints += [
                f"{module.at(node)}: `{source}` does not offer `{name}`" for name in names if name not in offers
            ]
    return complaints


def offered(module: Module) -> set[str]:
    """Return the names that a package's `__init__` lists in `__all__` or imports as themselves."""
    names: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names if alias.asname == alias.name}
        elif isinstance(node, ast.Assign) and any(
            isinstance(at, ast.Name) and at.id == "__all__" for at in node.targets
        ):
            names |= {str(item.value) for item in ast.walk(node.value) if isinstance(item, ast.Constant)}
    return names


def import_cycles(package: Path) -> list[str]:
    """Complaints about modules that import each other in a circle.

    Imports inside functions count, since they only hide a circle. Imports for type checking do not: they never run.
    """
    trees = {module.name: module for module in modules(package) if module.place not in FRONT_DOOR}
    graph = {name: set(_executed(module, trees)) - {name} for name, module in trees.items()}
    return [f"{' → '.join([*circle, circle[0]])}: import each other" for circle in _circles(graph)]


def _executed(module: Module, known: dict[str, Module]) -> Iterator[str]:
    for_types = {
        id(inner)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(module.tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if (target := inner if inner in known else node.module) in known:
                    yield target
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


def _circles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """For each module in a circle that no earlier one is in, yield a shortest circle through it."""
    done: set[str] = set()
    for start in sorted(graph):
        came_from: dict[str, str] = {}
        queue = [start]
        while queue and start not in came_from:
            here = queue.pop(0)
            for target in sorted(graph[here] - came_from.keys()):
                came_from[target] = here
                queue.append(target)
        if start not in came_from or start in done:
            continue
        circle = [start]
        while (before := came_from[circle[0]]) != start:
            circle.insert(0, before)
        circle = [start, *circle[:-1]]
        done |= set(circle)
        yield circle


def rooms_in_strings(package: Path) -> list[str]:
    """Complaints about rooms that are named in a string, where the order of imports cannot be checked."""
    complaints: list[str] = []
    for module in modules(package):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                match = _ROOM_PATH.fullmatch(node.value)
                if match and match[1] in FLOOR:
                    complaints.append(f"{module.at(node)}: names the room `{match[1]}` in a string")
    return complaints
