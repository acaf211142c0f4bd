"""Every argument of a public function is documented, and the check notices one that is not."""

from __future__ import annotations

import pytest

import privet
from tests.house.documented_arguments import missing_arguments, undocumented

ROOMS = [name for name in privet.__all__ if hasattr(getattr(privet, name), "__path__")]


@pytest.mark.parametrize("room", ["core", *ROOMS])
def test_public_functions_document_their_arguments(room: str) -> None:
    """Fails when a function or method that a room exports has an argument without an entry in `Args`."""
    assert undocumented(f"privet.{room}") == []


def test_a_missing_or_joint_entry_is_seen() -> None:
    """Fails when the check accepts an argument without an entry of its own."""

    def planted(one: int, two: int, three: int, *, four: int) -> None:
        """Do nothing.

        Args:
            one: The first.
            two, three: The others.
        """

    assert missing_arguments(planted) == ["two", "three", "four"]


def test_all_rooms_are_checked() -> None:
    """Fails when the list of rooms is empty for some reason."""
    assert {"accounting", "runs", "training"} <= set(ROOMS)
