"""State what must be true of the code that runs a described run, in words that fit whose data is protected."""

from __future__ import annotations

from privet.accounting.run_description import SamplingScheme, sampled_item
from privet.core.unit import Unit, Whose

__all__ = ["run_conditions"]

_ROWS = {
    SamplingScheme.POISSON: "every {row} enters each batch by its own coin (Poisson sampling; shuffling is not that)",
    SamplingScheme.WITHOUT_REPLACEMENT: "every batch is a fresh draw of exactly that many {row}s, without replacement",
    SamplingScheme.WITH_REPLACEMENT: "every batch is a fresh draw of exactly that many {row}s, with replacement",
    SamplingScheme.SHUFFLED: "every epoch uses every {row} exactly once; no gain from shuffling is claimed",
    SamplingScheme.INDEPENDENT_BATCHES: (
        "in every epoch each {row} picks its batch by itself; no gain from it is claimed"
    ),
    SamplingScheme.NONE: "every step uses every {row}",
}
# One who owns many rows and is priced as one record is chosen as one: coins for each row would choose them more often.
_OWNERS = {
    SamplingScheme.POISSON: (
        "every {who} enters each batch by one coin, with all their rows (Poisson sampling; shuffling is not that)"
    ),
    SamplingScheme.WITHOUT_REPLACEMENT: (
        "every batch is a fresh draw of exactly that many {who}s, with all their rows, without replacement"
    ),
    SamplingScheme.WITH_REPLACEMENT: (
        "every batch is a fresh draw of exactly that many {who}s, with all their rows, with replacement"
    ),
    SamplingScheme.SHUFFLED: (
        "every epoch uses every {who} exactly once, with all their rows in one batch; no gain from shuffling is claimed"
    ),
    SamplingScheme.INDEPENDENT_BATCHES: (
        "in every epoch each {who} picks one batch for all their rows; no gain from it is claimed"
    ),
    SamplingScheme.NONE: "every step uses every {who}, with all their rows",
}


def run_conditions(scheme: SamplingScheme, unit: Unit) -> tuple[str, ...]:
    """Return what must be true for the price to hold: an accountant prices a description and cannot see what is run.

    Args:
        scheme: How batches are drawn.
        unit: Whose data is protected.

    >>> run_conditions(SamplingScheme.NONE, Unit(Whose.CLIENT))[0]
    'Every step uses every client, with all their rows.'
    """
    who, row = unit.whose.value, sampled_item(unit)
    owned: tuple[str, ...] = ()
    if unit.records > 1:
        owned = (f"Each {who} owns at most {unit.records:,} records in the whole data set.",)
        chosen, clipped = _ROWS[scheme].format(row=row), "record's contribution"
    elif unit.whose is Whose.EXAMPLE:
        chosen, clipped = _ROWS[scheme].format(row=row), "example's contribution"
    else:
        if scheme is not SamplingScheme.NONE:
            owned = (f"Sampling rate, batch size and population count {who}s, not rows.",)
        chosen, clipped = _OWNERS[scheme].format(who=who), f"{who}'s contribution, of all their rows together,"
    summed = f"In every step each {clipped} is clipped to one L2 norm C, and the clipped ones are added up"
    return (
        f"{chosen[0].upper()}{chosen[1:]}.",
        *owned,
        f"{summed}; normal noise of standard deviation noise multiplier × C is added to the sum.",
        "Nothing else that depends on the data leaves: choosing settings or stopping by private scores costs extra.",
    )
