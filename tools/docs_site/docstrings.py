"""Griffe extension: prepare the docstrings and exports of the package for the API reference.

mkdocstrings loads this file by its path in `mkdocs.yml`. The package is read, never imported.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^(?P<indent> *)>>> .*\n?(?:^(?P=indent)\S.*\n?)*", re.MULTILINE)


def fenced(docstring: str) -> str:
    """Return a docstring with its doctests inside code fences; Markdown would read `>>>` as a quotation.

    >>> print(fenced("Add one.\\n\\n>>> 1 + 1\\n2"))
    Add one.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    if "```" in docstring:
        return docstring
    return _DOCTEST.sub(lambda found: _fence(found["indent"], found.group()), docstring)


def _fence(indent: str, example: str) -> str:
    newline = "" if example.endswith("\n") else "\n"
    return f"{indent}```pycon\n{example}{newline}{indent}```" + ("" if newline else "\n")


class Exports(griffe.Extension):
    """Fence doctests, describe type aliases by their value, and show what a room exports instead of its modules."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Prepare one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
        elif obj.is_attribute and str(obj.annotation).rpartition(".")[2] == "TypeAlias":
            obj.docstring = griffe.Docstring(f"Type alias of `{obj.value}`.", parent=obj)

    def on_package(self, *, pkg: Any, loader: Any, **_: Any) -> None:
        """Let a room's exports win over its modules of the same name (`privet.data.draft` is a function)."""
        # Names are looked up through the modules that are about to be hidden, so all must be resolved before.
        loader.resolve_aliases(implicit=True, external=False)
        for room in [pkg, *pkg.modules.values()]:
            for name in room.exports or ():
                module = room.members.get(name)
                exported = module.members.get(name) if module is not None and module.is_module else None
                if exported is not None and not exported.is_module:
                    room.members[name] = griffe.Alias(name, exported, parent=room)
