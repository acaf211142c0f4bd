"""What `privet mix send` notes of what it has sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from privet.cli.mix_send import Line, _Sent
from privet.core.errors import InvalidInput


def test_notes_of_what_was_sent_are_one_processs_at_a_time(tmp_path: Path) -> None:
    """Catches notes that the second of two processes writes over, so that a report could be sent, and count, again;
    and notes that cannot be read."""
    lines = [Line(tmp_path / "a", number, b'{"id": "%d"}' % number) for number in range(3)]
    with _Sent(tmp_path / "sent", b"batch") as sent:
        sent.add(lines[0])
        sent.add(lines[1])
        sent.remove(lines[1])
        with pytest.raises(InvalidInput, match="another process"), _Sent(tmp_path / "sent", b"batch"):
            pass
    with _Sent(tmp_path / "sent", b"batch") as sent:
        sent.add(lines[2])
    with _Sent(tmp_path / "sent", b"batch") as sent:
        assert [line in sent for line in lines] == [True, False, True]
    (tmp_path / "sent").write_bytes((tmp_path / "sent").read_bytes()[:-1])  # a line whose end was lost
    with _Sent(tmp_path / "sent", b"batch") as sent:
        sent.add(lines[1])
    with _Sent(tmp_path / "sent", b"batch") as sent:
        assert all(line in sent for line in lines)
    (tmp_path / "sent").write_bytes(b"\xff\n")
    with pytest.raises(InvalidInput, match="damaged"), _Sent(tmp_path / "sent", b"batch"):
        pass
