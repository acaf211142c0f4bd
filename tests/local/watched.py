"""A stop of a mix as a process that writes down everything it sees: `python -m tests.local.watched PLAN KEY RECORD`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from privet.core.random import default_rng
from privet.local.shuffling import MixKey, MixRefused, MixServer, Stop, read_plan


class Watched(MixServer):
    """Keeps who connected, and every byte that came in and went out."""

    def __init__(self, *given: Any) -> None:
        self.saw: dict[str, list[str]] = {"senders": [], "in": [], "out": []}
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.saw["senders"].append(client_address[0])
        super().process_request(request, client_address)

    def take_report(self, layer: bytes) -> int:
        self.saw["in"].append(layer.hex())
        return super().take_report(layer)

    def take_batch(self, body: bytes, signature: bytes) -> tuple[int, str]:
        size = self.plan.length(self.place)
        self.saw["in"] += [body[at : at + size].hex() for at in range(0, len(body), size)]
        return super().take_batch(body, signature)

    def _send(self, stop: Stop, body: bytes) -> None:
        size = self.plan.length(self.place + 1)
        self.saw["out"] += [body[at : at + size].hex() for at in range(0, len(body), size)]
        super()._send(stop, body)


def main(plan: str, key: str, record: str) -> int:
    server = Watched(read_plan(Path(plan)), MixKey.read(Path(key).read_text()), default_rng())
    Path(record + ".ready").touch()
    refusal = ""
    try:
        server.run(60.0)
    except MixRefused as reason:
        refusal = str(reason)
    reports = [report.decode() for report in server.reports or ()]
    Path(record).write_text(json.dumps({**server.saw, "reports": reports, "refusal": refusal}))
    return 1 if refusal else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
