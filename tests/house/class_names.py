"""One class name means one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.house.source import modules


def unique_class_names(package: Path) -> list[str]:
    """Complaints about names of classes that occur twice."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules(package):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.at(node))
    return [f"`{name}` is a class in {' and '.join(at)}" for name, at in sorted(places.items()) if len(at) > 1]
