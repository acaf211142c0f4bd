"""Every check of the library's own source, in one table: a function from a package's directory to complaints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.house import class_names, exports, randomness, room_imports, rooms, style, thin_commands

Check = Callable[[Path], list[str]]

CHECKS: dict[str, Check] = {
    "imports go one way between rooms": rooms.import_order,
    "rooms are entered through packages": room_imports.through_packages,
    "no import cycles": room_imports.import_cycles,
    "no room in a string": room_imports.rooms_in_strings,
    "__all__ is what is exported": exports.exports,
    "no global randomness": randomness.global_randomness,
    "no print, no input": style.no_output,
    "no file over 450 lines": style.file_sizes,
    "file names say something": style.file_names,
    "no blind except": style.blind_excepts,
    "no **kwargs in public": style.open_signatures,
    "public names have docstrings": style.docstrings,
    "a Release states its Guarantee": style.guarantees,
    "commands compute nothing": thin_commands.numerical_imports,
    "class names are unique": class_names.unique_class_names,
}
