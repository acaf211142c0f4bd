"""Budgets that survive: a privacy filter in a database, charged before any noise is drawn."""

from __future__ import annotations

from privet.ledger.advice import Refused
from privet.ledger.chain import ChainHead
from privet.ledger.charge import Charge
from privet.ledger.fingerprint import Fingerprint, fingerprint_of
from privet.ledger.ledger import Ledger
from privet.ledger.opening import opened as opened
from privet.ledger.records import Budget, Entry, Form, State, Statement, Verification

__all__ = [
    "Budget",
    "ChainHead",
    "Charge",
    "Entry",
    "Fingerprint",
    "Form",
    "Ledger",
    "Refused",
    "State",
    "Statement",
    "Verification",
    "fingerprint_of",
]
