"""The card of `tests.report.trained` with a schema for which somebody vouches, as `card sign` wants it."""

from __future__ import annotations

from dataclasses import replace

from privet.core.disclosure import Public
from privet.data import Category, Number, Schema, seal_of, with_sources
from privet.report.training_card import TrainingCard
from tests.data.sources import VOUCHED
from tests.report.trained import SCHEMA, trained

__all__ = ["SEALED", "signable"]


def _sealed(text: str) -> str:
    columns = [column for column in Schema.from_toml(text).columns if isinstance(column, (Number, Category))]
    return with_sources(text, {column.name: replace(VOUCHED, seal=seal_of(column)) for column in columns})


SEALED = _sealed(SCHEMA)


def signable(schema: str = SEALED, *, assumes: str | None = None) -> TrainingCard:
    """The card with another schema.

    Args:
        schema: The TOML on the card.
        assumes: The TOML whose assumptions the guarantee states; that of the card, if left out.
    """
    card = trained()
    stated = card.privacy.guarantee.value
    assumptions = (*stated.assumptions, *Schema.from_toml(assumes or schema).assumptions)
    privacy = replace(card.privacy, guarantee=Public(replace(stated, assumptions=assumptions)))
    return replace(card, schema=Public(schema), privacy=privacy)
