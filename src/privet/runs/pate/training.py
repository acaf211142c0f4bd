"""PATE in one call, and the files that it leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from privet.core.atomic_write import write_atomically
from privet.core.errors import InvalidInput
from privet.data import Schema
from privet.report import TrainingCard, write_run
from privet.runs.callbacks import RunCallbacks
from privet.runs.directory import RunDirectory
from privet.runs.files import call_of, files_of
from privet.runs.pate.card_builder import build_pate_card
from privet.runs.pate.pipeline import PateResult, PateRun
from privet.runs.pate.request import PateRequest, StudentName, TeacherName
from privet.runs.start import hold_directory
from privet.training.models import store

__all__ = ["train_pate", "write_pate_outputs"]

_OF_OTHER_METHODS = ("method", "compare", "tune", "model", "features", "audit")


def train_pate(
    given: Mapping[str, Any],
    rows: Mapping[str, Any],
    schema: str | Path | Schema | None,
    folder: Path,
    resume: bool,
    callbacks: RunCallbacks,
) -> TrainingCard:
    """Train teachers on private rows, ask them about public ones, and train a student on the noisy answers.

    Args:
        given: Options by the names of `PateRequest`; those of other methods must have their defaults.
        rows: Private rows as `data`, public ones as `public`, and public test rows as `test`.
        schema: As for `privet.train`.
        folder: Where the run goes.
        resume: Whether an interrupted run continues there.
        callbacks: Told about progress.

    Guarantee: that of the plan (`privet.pate.Plan`), charged before anything is drawn.
    """
    for name in ("compare", "tune", "audit"):
        if given.get(name):
            raise InvalidInput(name, "is for other methods", 'leave it out, or use method="dp-sgd"')
    options = {name: value for name, value in given.items() if name not in _OF_OTHER_METHODS}
    names = {field.name for field in fields(PateRequest)}
    if unknown := sorted(set(options) - names):
        known = ", ".join(sorted(names))
        raise InvalidInput("options", f"has {unknown[0]!r}, which is unknown", f"use some of: {known}")
    for name, kind in (("teacher", TeacherName), ("student", StudentName)):
        if name in options:
            options[name] = kind(options[name])
    request = PateRequest(**options)
    with hold_directory(folder, PateRequest.from_json, resume=resume) as directory:
        if resume:
            stored = directory.found()
            request, command = stored.asked, stored.command
        else:
            request = replace(request, **files_of(directory, rows, schema, request.target))
            command = call_of(request, directory)
        run = PateRun(request, directory, command, resume, lambda *planned: None, callbacks.on_message)
        return write_pate_outputs(directory, run.done(), callbacks.on_page)


def write_pate_outputs(
    directory: RunDirectory[PateRequest], result: PateResult, on_page: Callable[[int, int], None]
) -> TrainingCard:
    """Write the student, the answers, the card and the pages, and then remove what the run could resume from."""
    folder, card = directory.folder, build_pate_card(result)
    store(folder, result.student, result.described)
    write_atomically(folder / "answers.csv", _answers_csv(result), "out")
    write_run(folder, card, progress=on_page)
    directory.clear()
    return card


def _answers_csv(result: PateResult) -> str:
    """The released answers: the row in the public file, the label, and the noisy counts where those were released."""
    answers, names = result.answers.value, result.inputs.classes
    noisy: tuple[tuple[int, ...], ...] = answers.counts or ((),) * len(answers.rows)
    head = ",".join(["row", "answer", *([] if answers.counts is None else map(_quoted, names))])
    lines = [
        ",".join([str(row), "" if label is None else _quoted(names[label]), *map(str, counts)])
        for row, label, counts in zip(answers.rows, answers.labels, noisy, strict=True)
    ]
    return "\n".join([head, *lines]) + "\n"


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if set(text) & set(',"\n\r') else text
