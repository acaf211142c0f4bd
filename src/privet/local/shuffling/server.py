"""A stop of the way as a process of its own, over HTTP: the first takes reports one by one, the others whole batches.

Nothing is logged, and nothing is written to a disk. The next stop answers only once the batch has arrived at the end,
so that a refusal anywhere is known everywhere.
"""

from __future__ import annotations

import hmac
import threading
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from privet.core import InvalidInput, checked
from privet.core.random import Rng
from privet.local.shuffling.mix import Batch, BatchCounts, ConnectionLost, LayerOutcome, MixRefused
from privet.local.shuffling.onion import MixKey
from privet.local.shuffling.plan import MixPlan, Stop

__all__ = ["SIGNATURE", "MixServer", "posted"]

SIGNATURE = "X-Privet-Signature"
_STATUS = {LayerOutcome.ACCEPTED: 201, LayerOutcome.DUPLICATE: 200, LayerOutcome.BAD: 400}
_PATIENCE, _TRY_AGAIN = 10.0, 0.2


class MixServer(ThreadingHTTPServer):
    """One stop, for one batch. `run` ends when the batch has gone on, or cannot."""

    daemon_threads = False  # an answer that is on its way is sent before `run` ends

    def __init__(self, plan: MixPlan, key: MixKey, rng: Rng, *, host: str | None = None) -> None:
        self.plan, self.batch = plan, Batch(plan, key)
        self.place, self._key, self._rng = self.batch.place, key, rng
        self.reports: tuple[bytes, ...] | None = None
        """At the collector, once the batch is there: the reports, sorted, which is all that their multiset says."""
        self._lock, self._over = threading.Lock(), threading.Event()
        self._open = True
        self._refusal: MixRefused | None = None
        self._wait, self._counts = 600.0, self.batch.counts
        named, port = plan.stops[self.place].where
        try:
            super().__init__((host or named, port), _MixHandler)
        except (OSError, OverflowError) as error:
            reason = (getattr(error, "strerror", None) or "no such address").lower()
            raise InvalidInput("address", f"cannot be listened on at {host or named}:{port}: {reason}") from None

    def run(self, wait: float) -> BatchCounts:
        """Take part in the batch.

        Args:
            wait: The longest time to wait for reports or for the batch, in seconds.

        Returns:
            What arrived at this stop.

        Raises:
            MixRefused: The batch could not be passed on.
        """
        self._wait = checked.positive("wait", wait)
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            self._over.wait(wait)
            with self._lock:
                late, self._open = self._open, False
            if self.place == 0:
                self._pass_on()
            elif late:
                self._refusal = MixRefused(f"no batch came to stop {self.place + 1} within {wait:g} seconds")
            else:
                self._over.wait()
        finally:
            self.shutdown()
            thread.join()
            self.server_close()
        if self._refusal is not None:
            raise self._refusal
        return self._counts

    def take_report(self, layer: bytes) -> int:
        """Take one report, at the first stop.

        Args:
            layer: The sealed report.

        Returns:
            The HTTP status of the reply.
        """
        with self._lock:
            if not self._open:
                return 409
            taken = self.batch.add(layer)
            if self.batch.counts.accepted >= self.plan.close_at:
                self._open = False
                self._over.set()
            return _STATUS[taken]

    def take_batch(self, body: bytes, signature: bytes) -> tuple[int, str]:
        """Take a whole batch, from the stop before.

        Args:
            body: The layers, end to end.
            signature: The code that the stop before has made.

        Returns:
            The HTTP status and the text of the reply.
        """
        before = self.plan.stops[self.place - 1].key
        expected = self._key.signature(body, self.plan.name, before, sends=False)
        if not hmac.compare_digest(expected, signature):
            return 403, "this batch was not sent by the stop before"
        with self._lock:
            if not self._open:
                return 409, "a batch was taken already"
            self._open = False
        self.batch.add_all(body)
        self._pass_on()
        return (200, "") if self._refusal is None else (409, str(self._refusal))

    def _pass_on(self) -> None:
        self._counts = self.batch.counts
        try:
            inner = self.batch.close(self._rng)
            if self.batch.is_last:
                self.reports = tuple(sorted(inner))
            else:
                self._send(self.plan.stops[self.place + 1], b"".join(inner))
        except MixRefused as refusal:
            self._refusal = refusal
        finally:
            self._over.set()

    def _send(self, stop: Stop, body: bytes) -> None:
        signature = self._key.signature(body, self.plan.name, stop.key, sends=True)
        status, text = posted(stop, "/batch", body, patience=self._wait, headers={SIGNATURE: signature.hex()})
        if status != 200:
            raise MixRefused(text or f"stop {self.place + 2} answered {status}")


def posted(
    stop: Stop,
    path: str,
    body: bytes,
    *,
    patience: float,
    headers: dict[str, str] | None = None,
    source: tuple[str, int] | None = None,
) -> tuple[int, str]:
    """The status and the words of a stop's answer; waits up to `patience` seconds for it to be there at all."""
    pause = threading.Event()
    for _ in range(max(1, int(min(patience, _PATIENCE) / _TRY_AGAIN))):
        connection = HTTPConnection(*stop.where, timeout=patience, source_address=source)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/octet-stream"} | (headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read(4000).decode("utf-8", "replace")
        except ConnectionRefusedError:
            pause.wait(_TRY_AGAIN)
        except (OSError, HTTPException) as error:
            raise ConnectionLost(f"{stop.address} broke off: {str(error) or type(error).__name__}") from None
        finally:
            connection.close()
    raise MixRefused(f"nobody listens at {stop.address}; start every server before the first report is sent")


class _MixHandler(BaseHTTPRequestHandler):
    server: MixServer
    timeout = _PATIENCE
    server_version, sys_version = "privet", ""

    def do_POST(self) -> None:
        stop, length = self.server, self.headers.get("Content-Length", "")
        first = stop.place == 0
        one = stop.plan.length(stop.place)
        if self.path != ("/report" if first else "/batch"):
            self._reply(404, "there is nothing here")
        elif not (length.isascii() and length.isdigit()) or len(length) > 15:
            self._reply(411, "say how long the body is")
        elif int(length) > (one if first else one * stop.plan.close_at):
            self._reply(413, "that is too long")
        elif first:
            status = stop.take_report(self._body(int(length)))
            self._reply(status, "the batch is closed" if status == 409 else "")
        else:
            self._reply(*stop.take_batch(self._body(int(length)), self._signature()))

    def _body(self, length: int) -> bytes:
        try:
            return self.rfile.read(length)
        except TimeoutError:
            return b""

    def _signature(self) -> bytes:
        try:
            return bytes.fromhex(self.headers.get(SIGNATURE, ""))
        except ValueError:
            return b""

    def _reply(self, status: int, words: str) -> None:
        body = words.encode()
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is logged: who sent something, and when, is nobody's business."""
