"""State what must be true of the code that runs a described run, in words that fit whose data is protected."""

from __future__ import annotations

from privet.accounting.run_description import SamplingScheme, sampled_item
from privet.core import Unit, Whose

__all__ = ["run_conditions"]

_SAMPLING = {
    SamplingScheme.POISSON: (
        "every {item} enters each batch by {its} coin{rows} (Poisson sampling; shuffling is not that)"
    ),
    SamplingScheme.WITHOUT_REPLACEMENT: (
        "every batch is a fresh draw of exactly that many {item}s{rows}, without replacement"
    ),
    SamplingScheme.WITH_REPLACEMENT: "every batch is a fresh draw of exactly that many {item}s{rows}, with replacement",
    SamplingScheme.SHUFFLED: (
        "every epoch uses every {item} in exactly one batch{rows}; no gain from shuffling is claimed"
    ),
    SamplingScheme.INDEPENDENT_BATCHES: (
        "in every epoch each {item} picks one batch by itself{rows}; no gain from it is claimed"
    ),
    SamplingScheme.NONE: "every step uses every {item}{rows}",
}


def run_conditions(scheme: SamplingScheme, unit: Unit) -> tuple[str, ...]:
    """Return what must be true for a guarantee to hold: an accountant prices a description and cannot see what is run.

    Args:
        scheme: How batches are drawn.
        unit: Whose data is protected.

    Returns:
        One sentence for each condition.

    >>> run_conditions(SamplingScheme.NONE, Unit(Whose.CLIENT))[0]
    'Every step uses every client, with all their rows.'
    """
    who, item = unit.whose.value, sampled_item(unit)
    owned: tuple[str, ...] = ()
    if unit.records > 1:
        owned = (f"Each {who} owns at most {unit.records:,} records in the whole data set.",)
        its, rows, clipped = "its own", "", "record's contribution"
    elif unit.whose is Whose.EXAMPLE:
        its, rows, clipped = "its own", "", "example's contribution"
    else:
        # Who owns many rows and is priced as one record is sampled as one: a coin for each row would sample more often.
        if scheme is not SamplingScheme.NONE:
            owned = (f"Sampling rate, batch size and population count {who}s, not rows.",)
        its, rows, clipped = "one", ", with all their rows", f"{who}'s contribution, of all their rows together,"
    sampling = _SAMPLING[scheme].format(item=item, its=its, rows=rows)
    summed = f"In every step each {clipped} is clipped to one L2 norm C, and the clipped ones are added up"
    return (
        f"{sampling[0].upper()}{sampling[1:]}.",
        *owned,
        f"{summed}; normal noise of standard deviation noise multiplier × C is added to the sum.",
        "Nothing else that depends on the data leaves: choosing settings or stopping by private scores costs extra.",
    )
