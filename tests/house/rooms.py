"""The order of the rooms: which part of the package may import which."""

from __future__ import annotations

from pathlib import Path

from tests.house.source import imports, modules

# Each room may import the rooms in the rows above its own, and no other; rooms in one row do not import each other.
ORDER: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("accounting",),
    ("mechanisms",),
    ("ledger",),
    ("data",),
    ("query", "local", "training", "secure", "anonymity"),
    ("ensemble",),
    ("pate", "federated", "synthesis", "robustness"),
    ("attacks",),
    ("audit",),
    ("report",),
    ("runs",),
    ("sklearn", "cli"),
)
FLOOR = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms}
# Files beside the rooms: the front door, which shows names from every room, and `python -m privet`.
FRONT_DOOR = frozenset({"__init__.py", "__main__.py"})


def import_order(package: Path) -> list[str]:
    """Complaints about imports that go up, sideways or through the front door, and about rooms that the order lacks."""
    complaints: list[str] = []
    root = package.name
    for module in modules(package):
        if module.place in FRONT_DOOR:
            continue
        room = Path(module.place).parts[0].removesuffix(".py")
        if room not in FLOOR:
            complaints.append(f"{module.place}: `{room}` is not a room of the order in tests/house/rooms.py")
            continue
        for node, name in imports(module):
            parts = name.split(".")
            if parts[0] != root:
                continue
            target = parts[1] if len(parts) > 1 else ""
            if target not in FLOOR:
                complaints.append(f"{module.at(node)}: imports `{name}` through the front door; name its room")
            elif target != room and FLOOR[target] >= FLOOR[room]:
                complaints.append(f"{module.at(node)}: `{room}` may not import `{target}`")
    return complaints
