"""The handle of one charge: reserve, draw, commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from privet.core import Event
from privet.ledger.records import State

if TYPE_CHECKING:
    from privet.ledger.ledger import Ledger

__all__ = ["Charge"]


class Charge:
    """A charge that was admitted. Draw noise only between `draw()` and `commit()`, or inside `drawing()`.

    Guarantee: everything drawn under charges of one budget, each doing no more than its event says, is (ε, δ)-DP for
    the budget's unit, however the events were chosen (`docs/explanation`). You must keep true that noise is drawn only
    after `draw()` has returned, and once for each charge.
    """

    def __init__(
        self,
        ledger: Ledger,
        id_: str,
        budget: str,
        event: Event,
        state: State,
        *,
        attempt: int = 0,
        token: str | None = None,
    ) -> None:
        self._ledger, self._attempt = ledger, attempt
        self.id, self.budget, self.event, self.state = id_, budget, event, state
        self.token = token
        """What `Ledger.resume` asks for, if the charge may be resumed; keep it with the run's checkpoint."""

    def __repr__(self) -> str:
        return f"Charge({self.id}, {self.budget!r}, {self.state.value})"

    def draw(self) -> None:
        """Start drawing. From here on the whole charge stays, whatever happens; it is on disk before this returns."""
        self._ledger.step(self.id, State.DRAWING, self._attempt)
        self.state = State.DRAWING

    def commit(self) -> str:
        """Mark the release as complete, and return the chain's head, for the card."""
        head = self._ledger.step(self.id, State.COMMITTED, self._attempt)
        self.state = State.COMMITTED
        return head

    def abort(self) -> None:
        """Refund the charge; only before `draw()`."""
        self._ledger.step(self.id, State.ABORTED, self._attempt)
        self.state = State.ABORTED

    @contextmanager
    def drawing(self) -> Iterator[Charge]:
        """Draw inside the context and commit at its end; after an error, the charge stays in the state drawing."""
        self.draw()
        yield self
        self.commit()
