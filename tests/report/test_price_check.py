"""Cards that claim less than they cost: whoever wrote, signed or shared them, they are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privet.core.disclosure import Public
from privet.core.errors import InvalidInput
from privet.core.event import Gaussian
from privet.core.unit import Neighbours, Unit
from privet.ledger import Ledger
from privet.report import signing
from privet.report.card_json import from_json, to_json
from privet.report.charges import require_charged
from privet.report.price_check import require_priced
from privet.report.runs import load, read_card
from privet.report.signing import NotGenuine, make_key, sign, verify
from privet.report.training_card import TrainingCard, shareable
from privet.report.training_page import report_page
from privet.report.training_records import Charged
from tests.report.signable import signable
from tests.report.trained import curves, trained

Edit = Callable[[dict[str, Any]], None]


def lowered(guarantee: dict[str, Any], factor: float = 0.5) -> None:
    for end in ("lower", "upper"):
        guarantee["epsilon"][end] *= factor


def whole(card: dict[str, Any]) -> None:
    lowered(card["privacy"]["guarantee"]["value"])


def line(card: dict[str, Any]) -> None:
    lowered(card["bill"]["value"][1]["guarantee"])


def rung(card: dict[str, Any]) -> None:
    lowered(card["privacy"]["ladder"]["value"][1]["guarantee"])


def other_delta(card: dict[str, Any]) -> None:
    card["privacy"]["ladder"]["value"][0]["guarantee"]["delta"] *= 2


def growth(card: dict[str, Any]) -> None:
    card["growth"]["value"]["by_delta"][0][-1] *= 0.5


def compared(card: dict[str, Any]) -> None:
    card["compared"][1]["value"]["epsilon"] *= 0.5


def released(card: dict[str, Any]) -> None:
    lowered(card["scores"][0]["guarantee"])


def attack(card: dict[str, Any]) -> None:
    card["privacy"]["meaning"]["value"]["attacks"][0]["true_positive_rate"] *= 0.5


def belief(card: dict[str, Any]) -> None:
    card["privacy"]["meaning"]["value"]["beliefs"][0]["posterior"] *= 0.5


EDITS: dict[Edit, str] = {
    whole: "for the whole, and its events cost",
    line: "for 'its score on held-out rows'",
    rung: "for the whole by",
    other_delta: "answer for another δ or unit",
    growth: "for all epochs",
    compared: "for 'output' in compared",
    released: "for a release in scores",
    attack: "says of attackers less",
    belief: "says of attackers less",
}


def edited(edit: Edit) -> str:
    data = json.loads(to_json(shareable(signable())))
    edit(data["card"])
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    (run / "card.json").write_text(to_json(shareable(signable())), encoding="utf-8")
    (run / "report.html").write_text(report_page(shareable(signable()), curves()), encoding="utf-8")
    make_key(tmp_path / "signer.pem")
    monkeypatch.setattr(signing, "curves_of", lambda privacy, progress, whole: curves())  # of the same card, once
    return run


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_a_card_that_claims_too_little_is_not_read(edit: Edit, folder: Path, tmp_path: Path) -> None:
    """Catches any ε, or what it means, that can be written smaller than the events on the card cost."""
    (folder / "card.json").write_text(edited(edit), encoding="utf-8")
    with pytest.raises(InvalidInput, match=EDITS[edit]) as caught:
        load(folder) if edit is not whole else sign(folder, tmp_path / "signer.pem")
    assert f"run is {str(folder)!r}, of which card.json cannot be used" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sentences_on_a_card_follow_from_its_numbers() -> None:
    """Catches sentences that are shown as somebody wrote them, and a card of an older wording that is refused."""
    data = json.loads(to_json(shareable(signable())))
    honest = from_json(json.dumps(data)).privacy.meaning.value.sentences
    data["card"]["privacy"]["meaning"]["value"]["sentences"][0] = "No attack finds anyone."
    card = from_json(json.dumps(data))
    require_priced(card)
    assert card.privacy.meaning.value.sentences == honest


def test_honest_cards_are_read() -> None:
    """Catches a check that fails an honest card, its internal half, one that rounds otherwise or one that says more."""
    require_priced(trained())
    for factor in (1 - 1e-5, 2.0):
        data = json.loads(to_json(shareable(signable())))
        lowered(data["card"]["privacy"]["guarantee"]["value"], factor)
        require_priced(from_json(json.dumps(data)))


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signer who looks at nothing."""
    monkeypatch.setattr(signing, "load", read_card)
    monkeypatch.setattr(signing, "_require_page", lambda *_: None)


@pytest.mark.usefixtures("careless")
def test_a_signature_makes_no_claim_true(folder: Path, tmp_path: Path) -> None:
    """Catches a check that trusts a signer's numbers because the signature is good."""
    key = tmp_path / "signer.pem"
    honest = (folder / "report.html").read_text(encoding="utf-8")
    sign(folder, key)
    verify(folder, f"{key}.pub")
    (folder / "card.json").write_text(edited(whole), encoding="utf-8")
    sign(folder, key)
    with pytest.raises(NotGenuine, match=r"card.json claims ε ≤ .* whoever signed it"):
        verify(folder, f"{key}.pub")
    (folder / "card.json").write_text(to_json(shareable(signable())), encoding="utf-8")
    for lie in (honest.replace("<h1>ε ≤ ", "<h1>ε ≤ 0."), honest.replace("<h1>", "<h1>ε ≤ 0.1</h1><h1>")):
        assert lie != honest
        (folder / "report.html").write_text(lie, encoding="utf-8")
        sign(folder, key)
        with pytest.raises(NotGenuine, match=r"report.html promises something else than card.json"):
            verify(folder, f"{key}.pub")


def test_only_the_page_of_the_card_is_signed(folder: Path, tmp_path: Path) -> None:
    """Catches a page with another number in it, which the signer vouches for; and no way on for an older page."""
    page, key = folder / "report.html", tmp_path / "signer.pem"
    honest = page.read_text(encoding="utf-8")
    page.write_text(honest.replace("true-positive rate of at most", "true-positive rate below"), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"report.html is not what this version makes of its card.json.*--renew"):
        sign(folder, key)
    assert not (folder / signing.SIGNATURE).exists()
    sign(folder, key, renew=True)
    assert page.read_text(encoding="utf-8") == honest
    assert verify(folder, f"{key}.pub").files == ("card.json", "report.html")
    page.write_text("<p>my own report</p>", encoding="utf-8")
    with pytest.raises(InvalidInput, match="not a page of Privet's"):
        sign(folder, key, renew=True)
    page.unlink()
    assert sign(folder, key).files == ("card.json",)


def charged(ledger: Ledger, name: str, **more: Any) -> TrainingCard:
    """The card, and a budget that was charged for it line by line."""
    card = trained()
    ledger.create(name, epsilon=9.0, delta=1e-3, **more)
    for each in card.bill.value:
        with ledger.reserve(name, each.event).drawing():
            pass
    entries = tuple(entry.id for entry in ledger.show(name).entries)
    return replace(card, ledger=Public(Charged(name, entries, ledger.head(name))))


def test_a_card_against_its_ledger(tmp_path: Path) -> None:
    """Catches a card that was made of other events than were charged, or that names another ledger, unit or entry."""
    with Ledger(tmp_path / "ledger.db") as ledger, Ledger(tmp_path / "other.db") as other:
        card = charged(ledger, "digits")
        require_charged(card, ledger)
        ledger.reserve("digits", Gaussian(50.0)).abort()  # what comes later does not matter
        require_charged(card, ledger)

        def refused(words: str, where: Ledger = ledger, **changed: Any) -> None:
            assert card.ledger is not None
            told = Public(replace(card.ledger.value, **changed))
            with pytest.raises(NotGenuine, match=words):
                require_charged(replace(card, ledger=told), where)

        assert card.ledger is not None
        entries, head = card.ledger.value.entries, card.ledger.value.head
        refused("charged for something else", entries=entries[1:])
        refused("there is no entry", entries=(*entries, "0" * 32))
        refused("not a committed one", entries=(ledger.show("digits").entries[0].id, *entries))
        refused("not a committed one", entries=(entries[0][:8], *entries[1:]))
        refused("the ledger does not hold", head=f"{head[:-4]}0000" if head[-4:] != "0000" else f"{head[:-4]}1111")
        refused("no budget for 'else'", budget="else")
        charged(other, "digits")
        refused("the ledger", other)
        bare = replace(card, ledger=None)
        with pytest.raises(NotGenuine, match="charged to no ledger"):
            require_charged(bare, ledger)
        replaced = charged(ledger, "of replaced rows", unit=Unit(neighbours=Neighbours.REPLACE))
        with pytest.raises(NotGenuine, match="protects another unit"):
            require_charged(replaced, ledger)
