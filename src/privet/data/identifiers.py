"""Columns whose very name says that they tell who a row is about."""

from __future__ import annotations

import re

__all__ = ["names_a_person"]

_WORDS = frozenset(
    {"id", "ids", "uid", "uuid", "guid", "ssn", "nin", "mrn", "passport", "iban", "imei", "ip", "mac"}
    | {"email", "mail", "phone", "telephone", "mobile", "fax", "address", "street"}
    | {"name", "firstname", "lastname", "surname", "username", "login"}
)


def names_a_person(name: str) -> bool:
    """Return whether a column's name looks like that of an identifier.

    >>> [names_a_person(name) for name in ("patientId", "e-mail", "SSN", "first_name", "width", "idle")]
    [True, True, True, True, False, False]
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return not _WORDS.isdisjoint(re.split(r"[^a-z0-9]+", spaced.lower()))
