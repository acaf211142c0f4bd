"""One report is one person's, in whatever way it is written: what tells that it was sent already is its id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.local import report_lines
from privet.local.questionnaire import Questionnaire, SurveyQuestion
from privet.local.reports import report_on
from privet.local.shuffling import LayerOutcome, MixKey, MixPlan, Stop, id_of, send_reports, sending

REPORT = {"privet": 1, "survey": "5e", "id": "ab" * 16, "answers": {"fare": 1, "minutes": 4}}


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(REPORT, separators=(",", ":")),  # as the page writes it
        json.dumps(REPORT, sort_keys=True),  # as the endpoint writes it
        " " + json.dumps(REPORT) + "\r",
        json.dumps(REPORT).replace('"id"', '"\\u0069d"').replace("abab", "\\u0061bab", 1),
    ],
    ids=["page", "endpoint", "spaces", "escapes"],
)
def test_an_id_is_read_and_not_looked_for(line: str) -> None:
    """Catches two ways to write one report that are taken for two people's."""
    assert id_of(line.encode()) == REPORT["id"]


@pytest.mark.parametrize("line", [b"yes", b"\xff", b"[" * 10**5, b'["id"]', b'{"answer": 1}', b'{"id": 7}', b'"id"'])
def test_what_has_no_id(line: bytes) -> None:
    """Catches a line that would be known again by an id which is none, or that raises."""
    assert id_of(line) is None


def test_one_report_written_twice_is_sent_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches one person who counts as two, on whose number the price rests: a report as the page writes it, and the
    same one as the endpoint does, in one file or in two."""
    survey = Questionnaire("Smoking", 1.0, (SurveyQuestion("smoker", "Do you?", ("no", "yes")),))
    keys = [MixKey.new() for _ in range(3)]
    stops = [Stop(f"http://127.0.0.1:{8100 + place}", key.public) for place, key in enumerate(keys)]
    plan = MixPlan("b", 1.0, 1e-6, 2, tuple(stops[:2]), stops[2], survey=survey, close_at=10)
    sent: list[bytes] = []

    def taken(plan: MixPlan, report: bytes) -> LayerOutcome:
        sent.append(report)
        return LayerOutcome.ACCEPTED

    monkeypatch.setattr(sending, "send", taken)
    mine, other = (report_on(survey, {"smoker": 1}, SeededRng(seed)) for seed in (1, 2))
    page, endpoint, both = (tmp_path / name for name in ("page.jsonl", "endpoint.jsonl", "both.jsonl"))
    page.write_text(json.dumps(mine, separators=(",", ":")) + "\n")
    endpoint.write_text(json.dumps(mine, sort_keys=True) + "\n" + json.dumps(other, sort_keys=True) + "\n")
    both.write_text(page.read_text() + endpoint.read_text())
    with pytest.raises(InvalidInput, match=r"line 2 of .* is that of line 1"):
        send_reports(plan, report_lines(both), tmp_path / "notes")
    assert sent == []
    send_reports(plan, report_lines(page), tmp_path / "notes")
    with pytest.raises(InvalidInput, match=r"line 1 of .* were sent before"):
        send_reports(plan, report_lines(endpoint), tmp_path / "notes")
    send_reports(plan, report_lines(endpoint)[1:], tmp_path / "notes")
    assert len(sent) == 2
