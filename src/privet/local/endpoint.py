"""A small HTTP endpoint that hands out the questionnaire's page and takes reports; no address and no time is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from privet.core import InvalidInput
from privet.local.reports import LONGEST_REPORT, Collection, ReportOutcome

__all__ = ["Endpoint", "Page"]

Page = Callable[[], tuple[str, str]]
"""The content type and the text of what is at a path."""
_STATUS = {ReportOutcome.ACCEPTED: 201, ReportOutcome.DUPLICATE: 200, ReportOutcome.REFUSED: 400}
_PATIENCE = 10.0


class Endpoint(ThreadingHTTPServer):
    """Serves `pages` by path, and takes `POST /report`. Reports are appended to a file, one JSON line each."""

    daemon_threads = True
    request_queue_size = 512
    """A room answers at once; of the usual queue of 5, most would be turned away."""

    def __init__(
        self, collection: Collection, pages: Mapping[str, Page], out: Path, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.collection, self.pages, self.out = collection, pages, out
        self.lock = threading.Lock()
        try:
            super().__init__((host, port), _EndpointHandler)
        except (OSError, OverflowError) as error:
            reason = (getattr(error, "strerror", None) or "no such address").lower()
            raise InvalidInput("port", f"cannot be listened on at {host}:{port}: {reason}", "choose another") from None

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def take(self, line: bytes) -> ReportOutcome:
        """Count a report, and write it down before saying so."""
        with self.lock:
            outcome = self.collection.add(line)
            if outcome is ReportOutcome.ACCEPTED:
                with self.out.open("a", encoding="utf-8") as file:
                    # Written anew, so that nothing but the report itself gets into the file.
                    file.write(json.dumps(json.loads(line), sort_keys=True) + "\n")
            return outcome


class _EndpointHandler(BaseHTTPRequestHandler):
    server: Endpoint
    timeout = _PATIENCE
    server_version, sys_version = "privet", ""

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            self._reply(404, "text/plain", "There is nothing here.")
            return
        with self.server.lock:
            kind, text = page()
        self._reply(200, kind, text)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path != "/report":
            self._reply(404, "text/plain", "Reports go to /report.")
        elif not (length.isascii() and length.isdigit()):
            self._reply(411, "text/plain", "Say how long the report is.")
        elif len(length) > 9 or int(length) > LONGEST_REPORT:
            self._reply(413, "text/plain", "That is too long for a report.")
        else:
            try:
                line = self.rfile.read(int(length))
            except TimeoutError:
                self.close_connection = True
                return
            outcome = self.server.take(line) if len(line) == int(length) else ReportOutcome.REFUSED
            self._reply(_STATUS[outcome], "application/json", json.dumps({"outcome": outcome.value}))

    def _reply(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response_only(status)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Connection", "close"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is logged: who answered, and when, is nobody's business."""
