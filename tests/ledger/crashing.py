"""A program that is killed while it charges: `python -m tests.ledger.crashing URL points|moments`.

`points`: children are killed (SIGKILL) at each point in turn between the reservation and the end of the commit: before
and after every statement that reaches the database, before every COMMIT, and after every call. `moments`: children are
killed at moments that nobody chooses, so that some die inside a COMMIT. For each child one line of JSON says how far it
is known to have come: it writes `reserved`, `drawn` and `committed` when the call has returned, and the noise would be
drawn after `drawn`.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable

import sqlalchemy as sa

from privet.core.event import Laplace
from privet.core.unit import Unit
from privet.ledger import Ledger, pricing

EVENT = Laplace(5000.0)
MOMENTS = 60


def charge(url: str, purpose: str, reached: Callable[[str], None]) -> None:
    """One charge from beginning to end."""
    ledger = Ledger(url)
    one = ledger.reserve("clinic", EVENT, purpose=purpose)
    reached("reserved")
    one.draw()
    reached("drawn")
    one.commit()
    reached("committed")


def child_for(url: str, purpose: str, point: int | None) -> tuple[int, int]:
    """Fork a child that charges and, if it has a point, dies there; gives its number and a pipe to listen at."""
    listen, speak = os.pipe()
    child = os.fork()
    if child:
        os.close(speak)
        return child, listen
    os.close(listen)
    passed = 0

    def at(*_: object) -> None:
        nonlocal passed
        if passed == point:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    def reached(what: str) -> None:
        os.write(speak, what.encode() + b"\n")
        at()

    for moment in ("before_cursor_execute", "after_cursor_execute", "commit"):
        sa.event.listen(sa.Engine, moment, at)
    charge(url, purpose, reached)
    os._exit(0)


def report(child: int, listen: int, purpose: str) -> bool:
    """Say what the child had said; whether it was killed."""
    with os.fdopen(listen) as heard:
        said = heard.read().split()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    print(json.dumps({"purpose": purpose, "said": said, "killed": killed}), flush=True)
    return killed or status != 0


def main(url: str, how: str) -> None:
    """Children one after the other, each dying a little later than the one before."""
    pricing.curve(EVENT, Unit(), (2.0, math.inf))  # so that no child has to load the accountants first
    if how == "points":
        point = 0
        while report(*child_for(url, f"point {point}", point), f"point {point}"):
            point += 1
        return
    begin = time.perf_counter()
    report(*child_for(url, "moment 0", None), "moment 0")
    whole = time.perf_counter() - begin
    for moment in range(1, MOMENTS):
        child, listen = child_for(url, f"moment {moment}", None)
        time.sleep(whole * moment / MOMENTS)
        os.kill(child, signal.SIGKILL)
        report(child, listen, f"moment {moment}")


if __name__ == "__main__":
    main(*sys.argv[1:])
