"""One class name means one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.house.source import modules

DOUBLED = (
    "Missing",
    "Row",
    "Standing",
    "_Seen",
)
"""Names that still mean two things. The list only shrinks: take a name out when its twin is renamed."""


def doubled(package: Path) -> dict[str, list[str]]:
    """Every class name that is used more than once, with the places."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules(package):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.at(node))
    return {name: found for name, found in places.items() if len(found) > 1}


def unique_class_names(package: Path) -> list[str]:
    """Complaints about names of classes that occur twice and are not listed as such."""
    found = doubled(package)
    return [f"`{name}` is a class in {' and '.join(found[name])}" for name in sorted(set(found) - set(DOUBLED))]
