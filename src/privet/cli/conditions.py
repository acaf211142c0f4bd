"""What must be true of the code that runs what was described, in words that fit whose data is protected."""

from __future__ import annotations

from privet.cli.options import SamplingWord
from privet.core.unit import Unit, Whose

__all__ = ["conditions", "drawn_as"]

_ROWS = {
    SamplingWord.POISSON: "every {row} enters each batch by its own coin (Poisson sampling; shuffling is not that)",
    SamplingWord.WITHOUT_REPLACEMENT: "every batch is a fresh draw of exactly that many {row}s, without replacement",
    SamplingWord.WITH_REPLACEMENT: "every batch is a fresh draw of exactly that many {row}s, with replacement",
    SamplingWord.SHUFFLED: "every epoch uses every {row} exactly once; no gain from shuffling is claimed",
    SamplingWord.INDEPENDENT_BATCHES: "in every epoch each {row} picks its batch by itself; no gain from it is claimed",
    SamplingWord.NONE: "every step uses every {row}",
}
# One who owns many rows and is priced as one record is chosen as one: coins for each row would choose them more often.
_OWNERS = {
    SamplingWord.POISSON: (
        "every {who} enters each batch by one coin, with all their rows (Poisson sampling; shuffling is not that)"
    ),
    SamplingWord.WITHOUT_REPLACEMENT: (
        "every batch is a fresh draw of exactly that many {who}s, with all their rows, without replacement"
    ),
    SamplingWord.WITH_REPLACEMENT: (
        "every batch is a fresh draw of exactly that many {who}s, with all their rows, with replacement"
    ),
    SamplingWord.SHUFFLED: (
        "every epoch uses every {who} exactly once, with all their rows in one batch; no gain from shuffling is claimed"
    ),
    SamplingWord.INDEPENDENT_BATCHES: (
        "in every epoch each {who} picks one batch for all their rows; no gain from it is claimed"
    ),
    SamplingWord.NONE: "every step uses every {who}, with all their rows",
}


def drawn_as(unit: Unit) -> str:
    """What a batch is made of, and what rates and sizes count: rows, or all that one user or client owns at once.

    >>> drawn_as(Unit()), drawn_as(Unit(Whose.USER)), drawn_as(Unit(Whose.USER, records=3))
    ('row', 'user', 'record')
    """
    if unit.records > 1:
        return "record"  # group privacy prices each record by itself, and then all that one person owns
    return "row" if unit.whose is Whose.EXAMPLE else unit.whose.value


def conditions(word: SamplingWord, unit: Unit) -> tuple[str, ...]:
    """What must be true, in words: an accountant prices a description and cannot see what is run.

    >>> conditions(SamplingWord.NONE, Unit(Whose.CLIENT))[0]
    'Every step uses every client, with all their rows.'
    """
    who, drawn = unit.whose.value, drawn_as(unit)
    owned: tuple[str, ...] = ()
    if unit.records > 1:
        owned = (f"Each {who} owns at most {unit.records:,} records in the whole data set.",)
        chosen, clipped = _ROWS[word].format(row=drawn), "record's contribution"
    elif unit.whose is Whose.EXAMPLE:
        chosen, clipped = _ROWS[word].format(row=drawn), "example's contribution"
    else:
        if word is not SamplingWord.NONE:
            owned = (f"Sampling rate, batch size and population count {who}s, not rows.",)
        chosen, clipped = _OWNERS[word].format(who=who), f"{who}'s contribution, of all their rows together,"
    summed = f"In every step each {clipped} is clipped to one L2 norm C, and the clipped ones are added up"
    return (
        f"{chosen[0].upper()}{chosen[1:]}.",
        *owned,
        f"{summed}; normal noise of standard deviation noise multiplier × C is added to the sum.",
        "Nothing else that depends on the data leaves: choosing settings or stopping by private scores costs extra.",
    )
