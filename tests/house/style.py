"""The house style, where a machine can see it: size, names, output, errors, signatures, docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import Function, aliases, is_public, modules, public_definitions, resolved

LONGEST = 450
_SHAPELESS = re.compile(r"utils?|commons?|bases?|managers?|helpers?")
_BLIND = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})


def no_output(package: Path) -> list[str]:
    """Complaints about `print` and `input`: a library returns what it has to say, and the command line shows it."""
    complaints = []
    for module in modules(package):
        names = aliases(module)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call):
                name = resolved(node.func, names).removeprefix("builtins.")
                if name in ("print", "input", "rich.print", "sys.stdout.write", "sys.stderr.write"):
                    complaints.append(f"{module.at(node)}: calls `{name}`; return it, or show it from `cli`")
    return complaints


def file_sizes(package: Path) -> list[str]:
    """Complaints about files that are too long to be read at one sitting."""
    complaints = []
    for path in sorted(package.rglob("*.py")):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST:
            complaints.append(f"{path.relative_to(package).as_posix()}: {lines} lines; split it, {LONGEST} is the most")
    return complaints


def file_names(package: Path) -> list[str]:
    """Complaints about names that say nothing of what is inside."""
    complaints = []
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        words = [word for part in place.with_suffix("").parts for word in part.split("_")]
        complaints += [f"{place.as_posix()}: `{word}` says nothing" for word in words if _SHAPELESS.fullmatch(word)]
    return complaints


def blind_excepts(package: Path) -> list[str]:
    """Complaints about handlers that would swallow a mistake along with the failure they meant."""
    complaints = []
    for module in modules(package):
        known = aliases(module)
        for node in ast.walk(module.tree):
            caught: list[ast.expr] = []
            if isinstance(node, ast.ExceptHandler):
                if node.type is None:
                    complaints.append(f"{module.at(node)}: bare `except`; name what you expect")
                else:
                    caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            elif isinstance(node, ast.Call) and resolved(node.func, known) == "contextlib.suppress":
                caught = node.args
            blind = [name for item in caught if (name := resolved(item, {})) in _BLIND]
            complaints += [f"{module.at(node)}: catches `{name}`; name what you expect" for name in blind]
    return complaints


def open_signatures(package: Path) -> list[str]:
    """Complaints about public functions that take `**kwargs`: a misspelt option would pass unseen."""
    return [
        f"{module.at(node)}: `{node.name}` takes `**{node.args.kwarg.arg}`; spell the options out"
        for module in modules(package)
        for _, node in public_definitions(module)
        if isinstance(node, Function) and node.args.kwarg is not None and (is_public(node.name) or _is_dunder(node))
    ]


def docstrings(package: Path) -> list[str]:
    """Complaints about modules, public classes and public functions that do not say what they are for.

    A method of a class with parents may be explained by the parent, so it is let off.
    """
    complaints = []
    for module in modules(package):
        if ast.get_docstring(module.tree) is None:
            complaints.append(f"{module.place}: the module has no docstring")
        for owner, node in public_definitions(module):
            explained_above = owner is not None and any(resolved(base, {}) != "Protocol" for base in owner.bases)
            if is_public(node.name) and ast.get_docstring(node) is None and not explained_above and not _retold(node):
                complaints.append(f"{module.at(node)}: `{node.name}` has no docstring")
    return complaints


def guarantees(package: Path) -> list[str]:
    """Complaints about public functions that return a `Release` without a `Guarantee:` section in their docstring."""
    complaints = []
    for module in modules(package):
        for owner, node in public_definitions(module):
            if not isinstance(node, Function) or not is_public(node.name) or _retold(node):
                continue
            names = set(_returned(node))
            makes = "Release" in names or ("Self" in names and owner is not None and owner.name == "Release")
            if makes and not re.search(r"^\s*Guarantee:", ast.get_docstring(node) or "", re.MULTILINE):
                complaints.append(f"{module.at(node)}: `{node.name}` returns a Release and states no `Guarantee:`")
    return complaints


def _returned(node: Function) -> Iterator[str]:
    """Every name in the return annotation, also where the annotation is written as a text."""
    for part in ast.walk(node.returns) if node.returns else ():
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from re.findall(r"\w+", part.value)


def _retold(node: Function | ast.ClassDef) -> bool:
    """Whether a definition belongs to another of the same name that does the telling: overloads and setters."""
    marks = [resolved(mark, {}).split(".")[-1] for mark in node.decorator_list]
    return any(mark in ("overload", "setter", "override") for mark in marks)


def _is_dunder(node: Function) -> bool:
    return node.name.startswith("__") and node.name.endswith("__")
