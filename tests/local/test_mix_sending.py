"""Sending reports to a mix: notes of what was sent, and keys that serve once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from privet.core.errors import InvalidInput
from privet.core.random import default_rng
from privet.local import ReportLine
from privet.local.shuffling import LayerOutcome, MixKey, MixRefused, SentReports, open_stop, sending, stops
from privet.local.shuffling.mix import ConnectionLost


def test_notes_of_what_was_sent_are_one_processs_at_a_time(tmp_path: Path) -> None:
    """Catches notes that the second of two processes writes over, so that a report could be sent, and count, again;
    and notes that cannot be read."""
    lines = [ReportLine(tmp_path / "a", number, b'{"id": "%d"}' % number) for number in range(3)]
    with SentReports(tmp_path / "sent", b"batch") as sent:
        sent.add(lines[0])
        sent.add(lines[1])
        sent.remove(lines[1])
        with pytest.raises(InvalidInput, match="another process"), SentReports(tmp_path / "sent", b"batch"):
            pass
    with SentReports(tmp_path / "sent", b"batch") as sent:
        sent.add(lines[2])
    with SentReports(tmp_path / "sent", b"batch") as sent:
        assert [line in sent for line in lines] == [True, False, True]
    (tmp_path / "sent").write_bytes((tmp_path / "sent").read_bytes()[:-1])  # a line whose end was lost
    with SentReports(tmp_path / "sent", b"batch") as sent:
        sent.add(lines[1])
    with SentReports(tmp_path / "sent", b"batch") as sent:
        assert all(line in sent for line in lines)
    (tmp_path / "sent").write_bytes(b"\xff\n")
    with pytest.raises(InvalidInput, match="damaged"), SentReports(tmp_path / "sent", b"batch"):
        pass


class Stop(Exception):
    """The end of a fake server."""


def test_report_is_noted_before_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a report that is noted after it was sent, or whose note is taken back where it may have arrived: sent
    again it counts as another person, and the price rests on their number."""
    lines = [ReportLine(tmp_path / "a", number, b'{"id": "%d"}' % number) for number in range(3)]
    noted: list[int] = []

    def send(plan: object, report: bytes) -> LayerOutcome:
        noted.append(len((tmp_path / "sent").read_bytes().splitlines()))
        if report == b"2":
            raise ConnectionLost("the line went dead")
        return LayerOutcome.ACCEPTED

    monkeypatch.setattr(sending, "send", send)
    plan: Any = SimpleNamespace(batch="batch")
    with SentReports(tmp_path / "sent", b"batch") as sent:
        with pytest.raises(MixRefused, match="may have been taken, and is not sent again"):
            sending._send_all(plan, lines, [b"0", b"1", b"2"], sent)
        assert all(line in sent for line in lines)
        with pytest.raises(InvalidInput, match="were sent before; nothing was sent now"):
            sending._send_all(plan, lines[:1], [b"0"], sent)
    assert noted == [1, 2, 3]


@pytest.mark.parametrize("role", ["serve", "collect"])
def test_key_is_deleted_before_the_batch_is_mixed(role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a key that can mix a second batch: with one report changed, that would give the report away."""
    key = tmp_path / "key"
    key.write_text(MixKey.new().secret)
    there: list[bool] = []

    class Server:
        def __init__(self, *_: object, **__: object) -> None:
            there.append(key.exists())

        def run(self, wait: float) -> None:
            there.append(key.exists())
            raise Stop

    place = 1 if role == "collect" else 0
    plan: Any = SimpleNamespace(place_of=lambda public: place, servers=(None,))
    monkeypatch.setattr(stops, "MixServer", Server)
    with pytest.raises(Stop):
        open_stop(plan, key, default_rng(), is_collector=role == "collect").run(1.0)
    assert there == [True, False]
