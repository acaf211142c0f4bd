"""MkDocs hooks: adapt pages to the site, and check what MkDocs does not check.

`mkdocs.yml` names this file. What is wrong is logged as a warning, and `mkdocs build --strict` fails on warnings:
a link to a file that does not exist, a public name without a docstring or a place in the API reference, and a built
page that loads something from the network.
"""

from __future__ import annotations

import ast
import logging
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LOG = logging.getLogger("mkdocs.hooks.privet")
_FENCE = re.compile(r"^(?P<opening>\s*(?:`{3,}|~{3,})\w*)(?P<options> [^`]*)?$")
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_LOADED = re.compile(
    r"""<(?:script|link|img|iframe|source|audio|video|object|embed)\b[^>]*?\b(?:src|href|data)=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|@import[^;]*(?:https?:)?//[^;]+|url\(["']?(?:https?:)?//[^)]+"""
)


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Return a page's Markdown as the site needs it: without options for the tests, and without links out of docs/."""
    source = Path(page.file.abs_src_path)
    lines = []
    closing = ""
    for line in markdown.splitlines():
        fence = _FENCE.match(line)
        if closing:
            closing = "" if line.strip() == closing else closing
            lines.append(line)
        elif fence:
            closing = re.sub(r"\w", "", fence["opening"]).strip()
            lines.append(fence["opening"])
        else:
            lines.append(_LINK.sub(lambda link: _inside(link, source, Path(config["docs_dir"])), line))
    return "\n".join(lines)


def _inside(link: re.Match[str], source: Path, docs: Path) -> str:
    """Return a link to a file of the repository that is no page of the site as the file's path."""
    path = link["target"].partition("#")[0]
    if "://" in path or not path:
        return link.group()
    target = (source.parent / path).resolve()
    if target.is_relative_to(docs.resolve()):
        return link.group()
    if not target.exists():
        _LOG.warning("%s links to %s, which does not exist", source.relative_to(docs), link["target"])
        return link.group()
    return f"{link['text']} (`{target.relative_to(docs.resolve().parent).as_posix()}`)"


def on_post_build(*, config: Any) -> None:
    """Check the built site."""
    site = Path(config["site_dir"])
    root = Path(config["docs_dir"]).parent
    for name in undocumented(root / "src" / "privet", _inventory(site / "objects.inv")):
        _LOG.warning("%s is public and has no docstring, or no page below docs/reference/api", name)
    for place, loaded in _loaded_from_network(site):
        _LOG.warning("%s loads %s", place, loaded)


def undocumented(package: Path, documented: frozenset[str]) -> list[str]:
    """Return the names in `__all__` of the package and its rooms that the API reference does not have."""
    missing = []
    for file in [package / "__init__.py", *sorted(package.glob("*/__init__.py"))]:
        room = ".".join(file.parent.relative_to(package.parent).parts)
        names = [f"{room}.{name}" for name in _exports(file)]
        missing += [name for name in [room, *names] if name not in documented]
    return missing


def _exports(file: Path) -> list[str]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def _inventory(file: Path) -> frozenset[str]:
    """Return the names in the inventory that mkdocstrings wrote (Sphinx's format: four lines, then zlib)."""
    if not file.exists():
        return frozenset()
    entries = zlib.decompress(file.read_bytes().split(b"\n", 4)[4]).decode()
    return frozenset(entry.partition(" ")[0] for entry in entries.splitlines())


def _loaded_from_network(site: Path) -> Iterator[tuple[str, str]]:
    for file in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for found in _LOADED.finditer(file.read_text(encoding="utf-8")):
            yield file.relative_to(site).as_posix(), found.group()
