"""A program that charges one budget again and again: `python -m tests.ledger.charging URL TIMES`.

Prints the ids of the charges that were committed, and how many were refused.
"""

from __future__ import annotations

import json
import sys

from privet.core.errors import BudgetExceeded
from privet.core.event import Laplace
from privet.ledger import Ledger

EVENT = Laplace(290.0)


def main(url: str, times: int) -> None:
    """Reserve, draw and commit; every seventh charge is given back before anything is drawn."""
    committed: list[str] = []
    aborted = refused = 0
    # Patient, so that a busy machine is no failure.
    with Ledger(url, timeout=600.0) as ledger:
        for turn in range(times):
            try:
                charge = ledger.reserve("clinic", EVENT, purpose="count")
            except BudgetExceeded:
                refused += 1
                continue
            if turn % 7 == 6:
                charge.abort()
                aborted += 1
                continue
            charge.draw()
            charge.commit()
            committed.append(charge.id)
    print(json.dumps({"committed": committed, "aborted": aborted, "refused": refused}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
