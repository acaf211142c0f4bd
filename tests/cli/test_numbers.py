"""Whole numbers are read as people write them, and what is not one is answered with what to write."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.cli.numbers import WHOLE
from tests.cli.conftest import Run
from tests.cli.test_errors import refused
from tests.cli.test_help import PATHS, found

RUN = "account --noise-multiplier 4 --sample-rate 0.01 --delta 1e-5 --json --steps"


@pytest.mark.parametrize("text", ["1000", "1e3", "1E+3", "1_000", "1000.0", "0.1e4", " 1000 "])
def test_the_same_number_however_it_is_written(privet: Run, text: str) -> None:
    """Fails when scientific notation is refused, or read as another number."""
    assert privet(RUN, f"'{text}'").json["event"]["count"] == 1000


REFUSED = {
    "12.5": "'12.5' is not a whole number; write 12 or 13",
    "-2.5": "'-2.5' is not a whole number; write -3 or -2",
    "1,000": "'1,000' has commas; write 1000",
    "nan": "'nan' is not a whole number; write one such as 1000, 1_000 or 1e3",
    "inf": "'inf' is not a whole number",
    "ten": "'ten' is not a whole number",
    "''": "'' is not a whole number",
    "1e999999999": "'1e999999999' is more than can be counted here",
    "1e12": "--steps ask for more than 100,000,000 noisy updates, the most that is priced; use fewer",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_to_write_instead(privet: Run, text: str) -> None:
    """Fails when a number is refused without saying what would be understood, or a huge one is written out."""
    assert REFUSED[text] in refused(privet(RUN, text))


@given(st.integers(-(10**30), 10**30), st.integers(0, 9))
def test_no_digit_is_lost(number: int, zeros: int) -> None:
    """Fails when a number passes through floating point, which has 16 digits."""
    assert WHOLE.convert(f"{number}e{zeros}", None, None) == number * 10**zeros
    assert WHOLE.convert(f"{number}{'0' * zeros}e-{zeros}", None, None) == number


@pytest.mark.parametrize("path", PATHS, ids=lambda path: "privet " + " ".join(path))
def test_every_whole_number_is_read_this_way(path: tuple[str, ...]) -> None:
    """Fails when a new option takes plain integers, and refuses 1e3 where its neighbours understand it."""
    assert [parameter.name for parameter in found(path).params if parameter.type is click.INT] == []
