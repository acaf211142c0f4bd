"""Run a command in this process and record what it did: exit code, JSON keys, events, ε, charges."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privet.cli.run import main

__all__ = ["Record", "record_command"]

Record = dict[str, Any]


def record_command(line: str, *, exact: bool) -> Record:
    """Run a command line in the current directory.

    Args:
        line: what is typed after `privet`.
        exact: whether to record the digest of the model, too, which differs between processors.
    """
    arguments = shlex.split(line)
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = main(arguments)
    record: Record = {"command": line, "exit": code}
    if code == 2:
        record["error_lines"] = len(stderr.getvalue().strip().splitlines())
    if "--json" in arguments and code == 0:
        said = json.loads(stdout.getvalue())
        record["keys"] = sorted(set(_keys(said)))
        record["privacy"] = _privacy(said)
    if "--out" in arguments and (card := Path(arguments[arguments.index("--out") + 1]) / "card.json").exists():
        record |= _run(card, exact=exact)
    return record


def _run(card: Path, *, exact: bool) -> Record:
    said = json.loads(card.read_text(encoding="utf-8"))["card"]
    internal = json.loads(card.with_name("internal.json").read_text(encoding="utf-8"))
    found: Record = {
        "files": sorted(path.name for path in card.parent.iterdir()),
        "card_keys": sorted(set(_keys(said))),
        "internal_keys": sorted(set(_keys(internal))),
        "event": said["privacy"]["event"]["value"],
        "guarantee": _guarantee(said["privacy"]["guarantee"]["value"]),
        "bill": [[line["what"], line["event"], _guarantee(line["guarantee"])] for line in said["bill"]["value"]],
        "choices": [each["name"] for each in said["choices"]["value"]],
        "scores": [[each["value"]["name"], each["value"]["on"], each["value"]["covers"]] for each in said["scores"]],
        "charges": len(said["ledger"]["value"]["entries"]) if said["ledger"] else 0,
    }
    if exact:
        model = card.with_name("model.safetensors").read_bytes()
        found["model"] = hashlib.sha256(model).hexdigest()
        found["values"] = [each["value"]["value"] for each in said["scores"]]
    return found


def _guarantee(said: Record) -> list[Any]:
    return [said["epsilon"]["lower"], said["epsilon"]["upper"], said["delta"], said["unit"], said["accountant"]]


def _keys(said: Any, path: str = "") -> Iterator[str]:
    if isinstance(said, dict):
        yield path
        for key, value in said.items():
            yield from _keys(value, f"{path}.{key}")
    elif isinstance(said, list):
        for value in said:
            yield from _keys(value, f"{path}[]")
    else:
        yield path


def _privacy(said: Any, path: str = "") -> Record:
    """Every ε, δ and event of a JSON object, by its path."""
    found: Record = {}
    if isinstance(said, dict):
        for key, value in said.items():
            here = f"{path}.{key}"
            if key in ("epsilon", "delta", "event", "epsilon_left", "delta_left"):
                found[here] = value
            else:
                found |= _privacy(value, here)
    elif isinstance(said, list):
        for place, value in enumerate(said):
            found |= _privacy(value, f"{path}[{place}]")
    return found
