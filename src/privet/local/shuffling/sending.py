"""The side of the respondents: seal reports and send each once to the first server; those not taken are named."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Self

from privet.core import InvalidInput, locked
from privet.local.report_files import ReportLine
from privet.local.shuffling.mix import ConnectionLost, LayerOutcome, MixRefused
from privet.local.shuffling.onion import seal
from privet.local.shuffling.plan import MixPlan
from privet.local.shuffling.report_format import canonical_report, id_of
from privet.local.shuffling.server import posted

__all__ = ["SentReports", "send", "send_reports"]

_PATIENCE = 30.0
_TAKEN = {201: LayerOutcome.ACCEPTED, 200: LayerOutcome.DUPLICATE, 400: LayerOutcome.BAD}
_HASH = re.compile(rb"[0-9a-f]{64}")


def send(plan: MixPlan, report: bytes, *, source: tuple[str, int] | None = None) -> LayerOutcome:
    """Send one report, inside of a layer for each stop. The id of a survey's report is not sent.

    **Each call is one person.** Every layer is made with a key of its own and no id travels, so that nobody on the way
    could tell a report that is sent again from that of someone with the same answers: it would count as another person,
    on whose number the price rests. Call this once for each report; `privet mix send` keeps notes of what it has sent.

    Args:
        plan: The public plan of the batch.
        report: A report that is randomized already: it has the plan's ε by itself, whatever becomes of the batch.
        source: The address to send from, where a machine has several.

    Returns:
        What the first server did with the report.

    Raises:
        InvalidInput: The report is not one that the plan prices (see `canonical_report`).
        MixRefused: The batch is closed, or the first server does not answer.
    """
    sealed = seal(canonical_report(plan, report), [stop.key for stop in plan.stops], plan.payload, plan.name)
    status, words = posted(plan.servers[0], "/report", sealed, patience=_PATIENCE, source=source)
    if status not in _TAKEN:
        raise MixRefused(words or f"the first server answered {status}")
    return _TAKEN[status]


def send_reports(plan: MixPlan, lines: Sequence[ReportLine], notes: Path) -> str:
    """Send reports to the first server of a mix, each once.

    A report is noted in `notes` before it is sent, so that none is sent twice, also after a crash: one that may have
    been taken counts as taken. Sent again it would count as another person, and the guarantee rests on their number.

    Args:
        plan: The public plan of the batch.
        lines: The reports, already randomized, from `privet.local.report_lines`.
        notes: The file that notes what was sent; one process uses it at a time.

    Returns:
        How many reports are on their way, in words.

    Raises:
        InvalidInput: A report is not what the plan prices, or was sent before. Nothing is sent.
        MixRefused: Some reports were not taken; their lines are named.
    """
    reports = _checked(plan, lines)
    with SentReports(notes, plan.name) as sent:
        return _send_all(plan, lines, reports, sent)


def _send_all(plan: MixPlan, lines: Sequence[ReportLine], reports: Sequence[bytes], sent: SentReports) -> str:
    if again := [line for line in lines if line in sent]:
        problem = f"in {_named(again)} were sent before; nothing was sent now"
        raise InvalidInput("reports", problem, "send the others alone")
    left: list[ReportLine] = []
    for index, (line, report) in enumerate(zip(lines, reports, strict=True)):
        sent.add(line)
        try:
            if send(plan, report) is not LayerOutcome.ACCEPTED:
                sent.remove(line)
                left.append(line)
        except MixRefused as refusal:
            if isinstance(refusal, ConnectionLost):
                left += lines[index + 1 :]
                refusal = MixRefused(f"{refusal}; {line} may have been taken, and is not sent again")
            else:
                sent.remove(line)
                left += lines[index:]
            raise MixRefused(f"{refusal}; {_summary(plan, lines, left)}; not taken: {_named(left)}") from None
    if left:
        raise MixRefused(f"{_summary(plan, lines, left)}; not taken: {_named(left)}")
    return _summary(plan, lines, left)


class SentReports:
    """The file that notes which reports of a batch were sent, hashed: by id, or by file, line and content.

    A line of the file is a hash, with a minus before it if the report was refused after all. One process at a time.
    """

    def __init__(self, path: Path, batch: bytes) -> None:
        self._path, self._batch = path, batch

    def __enter__(self) -> Self:
        try:
            self._file = FileIO(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600), "a+")
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            problem = f"has notes of what was sent in {str(self._path)!r}, which cannot be opened: {reason}"
            raise InvalidInput("plan", problem, "make room, or see who owns them") from None
        with ExitStack() as undo:
            undo.callback(self._file.close)
            self._hashes = self._read()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self) -> set[str]:
        if not locked(self._file):
            raise InvalidInput("plan", "is one that another process sends reports by now", "wait for it")
        self._file.seek(0)
        hashes: set[str] = set()
        text = self._file.readall()
        for name in text.split():
            plain = name.removeprefix(b"-")
            if not _HASH.fullmatch(plain):
                problem = f"has notes of what was sent in {str(self._path)!r}, which are damaged"
                raise InvalidInput("plan", problem, "repair them: without them a report may count twice")
            (hashes.discard if plain is not name else hashes.add)(plain.decode())
        if text and not text.endswith(b"\n"):
            self._write(b"\n")
        return hashes

    def __contains__(self, line: ReportLine) -> bool:
        return self._name(line) in self._hashes

    def add(self, line: ReportLine) -> None:
        """Note a report as sent; the note is on the disk before this returns.

        Args:
            line: The report.

        Raises:
            InvalidInput: There is no room for the note.
        """
        self._hashes.add(self._name(line))
        self._note(self._name(line))

    def remove(self, line: ReportLine) -> None:
        """Withdraw a note: the report was refused for certain.

        Args:
            line: The report.
        """
        self._hashes.discard(self._name(line))
        self._note("-" + self._name(line))

    def _note(self, text: str) -> None:
        self._write(f"{text}\n".encode())
        os.fsync(self._file.fileno())

    def _write(self, text: bytes) -> None:
        before = os.fstat(self._file.fileno()).st_size
        try:
            whole = self._file.write(text) == len(text)
        except OSError:
            whole = False
        if not whole:
            self._file.truncate(before)
            problem = f"has notes of what was sent in {str(self._path)!r}, which have no room"
            raise InvalidInput("plan", problem, "make room; the report was not sent")

    def _name(self, line: ReportLine) -> str:
        name = id_of(line.report)
        where = "" if name is not None else f"{line.path.resolve()}:{line.number}"
        content = line.report.strip() if name is None else name.encode(errors="surrogatepass")
        return hashlib.sha256(b"\0".join((self._batch, where.encode(), content))).hexdigest()


def _checked(plan: MixPlan, lines: Sequence[ReportLine]) -> list[bytes]:
    if len(lines) > plan.close_at:
        problem = f"are {len(lines):,}, and the batch closes at {plan.close_at:,}; nothing was sent"
        raise InvalidInput("reports", problem, "send fewer, or agree on a plan with a larger close-at")
    reports, seen = [], dict[str, ReportLine]()
    for line in lines:
        try:
            report = canonical_report(plan, line.report)
        except InvalidInput as error:
            raise InvalidInput("reports", f"in {line}: it {error.problem}; nothing was sent", error.advice) from None
        # Without its id nobody could tell later that a report came twice.
        if (name := id_of(line.report)) is not None:
            first = seen.setdefault(name, line)
            if first is not line:
                problem = f"in {line} is that of {first} again; nothing was sent"
                raise InvalidInput("reports", problem, "send each report once")
        reports.append(report)
    return reports


def _summary(plan: MixPlan, lines: Sequence[ReportLine], left: Sequence[ReportLine]) -> str:
    way = "report is on its way" if len(lines) == 1 else "reports are on their way"
    return f"{len(lines) - len(left):,} of {len(lines):,} {way} to {plan.batch!r}"


def _named(lines: Sequence[ReportLine]) -> str:
    """Return the lines by file, in ranges.

    >>> _named([ReportLine(Path("a"), number, b"") for number in (3, 7, 8, 9)])
    "lines 3, 7 to 9 of 'a'"
    """
    files: dict[Path, list[list[int]]] = {}
    for line in lines:
        runs = files.setdefault(line.path, [])
        if runs and runs[-1][-1] == line.number - 1:
            runs[-1] = [runs[-1][0], line.number]
        else:
            runs.append([line.number])
    return "; ".join(
        f"line{'s' if len(runs) > 1 or len(runs[0]) > 1 else ''} "
        f"{', '.join(' to '.join(map(str, run)) for run in runs)} of {str(path)!r}"
        for path, runs in files.items()
    )
