"""Which budget pays for a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privet.core import InvalidInput

if TYPE_CHECKING:
    from privet.core import Event, Unit
    from privet.ledger import Budget, Charge, Fingerprint, Ledger

__all__ = ["BudgetCharge"]

_ADVICE = "give privet.Ledger(place).budget(name), or BudgetCharge with that budget"


@dataclass(frozen=True)
class BudgetCharge:
    """The budget that a run is charged to, with the details of the entry.

    Where only the budget is to be said, `charge=ledger.budget("clinic")` is enough.

    >>> import privet, tempfile
    >>> ledger = privet.Ledger(f"{tempfile.mkdtemp()}/ledger.db")
    >>> _ = ledger.create("clinic", epsilon=3.0, delta=1e-5)
    >>> BudgetCharge(ledger.budget("clinic"), purpose="readmission model").budget.name
    'clinic'
    """

    budget: Budget
    """The budget, as `Ledger.budget` returns it."""
    fingerprint: Fingerprint | None = None
    """Fingerprint of the data set, if the budget is bound to one."""
    purpose: str = "training"
    """What the ledger's entry says the run is for."""

    def __post_init__(self) -> None:
        from privet.ledger import Budget

        if not isinstance(self.budget, Budget):
            raise InvalidInput("charge", f"is of the type {type(self.budget).__name__}", _ADVICE)

    @staticmethod
    def of(charge: BudgetCharge | Budget | None) -> BudgetCharge | None:
        """Return the charge for a budget, a charge or None.

        Args:
            charge: What the `charge` argument of a run was given.

        Returns:
            The charge, or None for a run that is charged to no budget.

        Raises:
            InvalidInput: It is of another type.
        """
        return charge if charge is None or isinstance(charge, BudgetCharge) else BudgetCharge(charge)

    @property
    def ledger(self) -> Ledger:
        """The ledger that the budget is in."""
        if self.budget.ledger is None:
            raise InvalidInput("charge", "is to a budget that was not read from a ledger", _ADVICE)
        return self.budget.ledger

    def reserve(self, event: Event, unit: Unit) -> Charge:
        """Reserve the whole plan, before anything is drawn.

        Args:
            event: What the whole run does to the data.
            unit: Whom the run protects.

        Returns:
            The charge, which a resumed run can take over.

        Raises:
            InvalidInput: The budget protects another unit.
            BudgetExceeded: The event does not fit into the budget.
        """
        if self.budget.unit != unit:
            problem = f"is to a budget that protects {self.budget.unit}, and this run protects {unit}"
            advice = (
                "give the plan population= (a public number of rows), or sample_rate= and steps=, for add/remove; "
                "or charge a budget that was created with the run's unit="
            )
            raise InvalidInput("charge", problem, advice)
        name, fingerprint = self.budget.name, self.fingerprint
        return self.ledger.reserve(name, event, purpose=self.purpose, fingerprint=fingerprint, resumable=True)
