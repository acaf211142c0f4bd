"""What a run keeps for its owner: where its rows lie, and by which they are known again."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from privet.core import InvalidInput
from privet.report import Internal, Remembered
from privet.runs.inputs import Data, TrainingInputs
from privet.runs.methods.registry import METHODS
from privet.runs.payment import rows_digest
from privet.runs.request import TrainRequest

__all__ = ["record_rows", "require_same_rows"]


def record_rows(request: TrainRequest, inputs: TrainingInputs) -> Internal[Remembered] | None:
    """Return the request and a keyed hash of the rows; None where the run may not read raw rows, or does not fit them.

    Args:
        request: The request of the run.
        inputs: The data of the run.
    """
    method = METHODS[request.method]
    if not method.has_central_trust or not method.fits_rows or inputs.train is None:
        return None
    key = secrets.token_hex(16)
    return Internal(Remembered(request.to_json(), _digest(key, inputs.train), key))


def require_same_rows(remembered: Remembered, data: Data) -> None:
    """Refuse rows other than those that the run was trained on: attacks on them would mean nothing.

    Args:
        remembered: What `record_rows` returned.
        data: The rows.

    Raises:
        InvalidInput: The rows differ, or are in another order.
    """
    if not hmac.compare_digest(_digest(remembered.key, data), remembered.rows):
        problem = "is not what the run was trained on: its rows are others, or in another order"
        raise InvalidInput("data", problem, "give the file as it was")


def _digest(key: str, data: Data) -> str:
    return hmac.new(bytes.fromhex(key), rows_digest(data), hashlib.sha256).hexdigest()
