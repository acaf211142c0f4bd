"""Files of reports, one JSON report a line: read, merge and append."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from privet.core import InvalidInput
from privet.local.questionnaire import Questionnaire
from privet.local.reports import Collection, ReportOutcome

__all__ = ["ReportLine", "append_report", "merge_reports", "read_reports", "report_lines"]


@dataclass(frozen=True)
class ReportLine:
    """A report, and the line of the file that it stands in."""

    path: Path
    number: int
    report: bytes

    def __str__(self) -> str:
        return f"line {self.number} of {str(self.path)!r}"


def report_lines(path: Path) -> list[ReportLine]:
    """Return the lines of a file that are not empty.

    Args:
        path: The file.

    Raises:
        InvalidInput: The file cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput("reports", f"in {str(path)!r} cannot be read: {reason}", "name a file of reports") from None
    return [ReportLine(path, number, report) for number, report in enumerate(lines, start=1) if report.strip()]


def read_reports(questionnaire: Questionnaire, paths: Iterable[Path]) -> Collection:
    """Count the reports in some files.

    Args:
        questionnaire: The questionnaire that the reports belong to; others are counted as refused.
        paths: The files.

    Returns:
        The collection, whose `estimate` says what people would have answered.

    Raises:
        InvalidInput: A file cannot be read.
    """
    collection = Collection(questionnaire)
    for path in paths:
        for line in report_lines(path):
            collection.add(line.report)
    return collection


def merge_reports(collection: Collection, path: Path, out: Path) -> None:
    """Count the reports of a file, and append those that are new to another file.

    Args:
        collection: What was counted before.
        path: The file with reports.
        out: Where new reports are appended.

    Raises:
        InvalidInput: A file cannot be read or written.
    """
    for line in report_lines(path):
        if collection.add(line.report) is ReportOutcome.ACCEPTED:
            append_report(out, line.report.decode())


def append_report(path: Path, line: str) -> None:
    """Append one report to a file.

    Args:
        path: The file.
        line: The report.

    Raises:
        InvalidInput: The file cannot be written.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput("out", f"cannot be written: {reason}", "choose another file") from None
