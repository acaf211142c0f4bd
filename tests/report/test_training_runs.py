"""Runs on the disk, side by side, on a terminal and in a notebook."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from privet.core.disclosure import Internal, Public
from privet.core.errors import InvalidInput
from privet.core.event import Laplace
from privet.core.random import SeededRng
from privet.core.randomness import Randomness
from privet.core.release import Release
from privet.core.unit import Unit
from privet.ledger import Ledger
from privet.mechanisms import Count, DiscreteGaussianMechanism
from privet.report.card_json import to_json
from privet.report.notebook import guarantee_table, ledger_table, release_table
from privet.report.runs import compare, compare_page, load, require_folder, trials_of, write_run
from privet.report.terminal import show
from privet.report.training_card import shareable
from privet.report.words import up
from tests.cli.test_page import Elements, specs_in
from tests.report.trained import trained


def test_a_run_is_written_and_read(tmp_path: Path) -> None:
    """Fails when what is read is not what was written, or a second run would overwrite the first."""
    folder = tmp_path / "runs" / "digits"
    require_folder(folder)
    names = {path.name for path in write_run(folder, trained())}
    assert names == {path.name for path in folder.iterdir()}
    assert to_json(load(folder)) == to_json(shareable(trained()))
    assert to_json(load(folder, internal=True), internal=True) == to_json(trained(), internal=True)
    with pytest.raises(InvalidInput, match="holds a run already"):
        require_folder(folder)


def test_bad_folders_are_one_line(tmp_path: Path) -> None:
    """Fails when a folder that is none, or holds somebody's page, ends in a traceback or in a lost file."""
    with pytest.raises(InvalidInput, match=r"run is .* card.json cannot be read"):
        load(tmp_path / "nowhere")
    (tmp_path / "card.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="it is not text"):
        load(tmp_path)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(InvalidInput, match="cannot be made"):
        require_folder(file / "run")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "report.html").write_text("<p>my own report</p>")
    with pytest.raises(InvalidInput, match="not a page of Privet's"):
        write_run(theirs, trained())
    assert [path.name for path in theirs.iterdir()] == ["report.html"]


def test_runs_side_by_side() -> None:
    """Fails when a run is missing from the table, an internal score gets into it, or what differs is not told."""
    card = trained()
    user = replace(card.privacy.guarantee.value, unit=Unit(records=2))
    other = replace(
        card,
        data=Public("faces"),
        scores=(),
        history=(),
        compared=(),
        privacy=replace(card.privacy, guarantee=Public(user)),
    )
    found = compare({"one": card, "two <2>": other})
    assert [row[0] for row in found.rows] == ["one", "one", "one", "two <2>"]
    upper = up(card.privacy.guarantee.value.epsilon.upper)
    assert all(row[3] == upper for row in found.rows if row[2] == card.method.value)
    assert not any("training rows" in cell or "INTERNAL" in cell for row in found.rows for cell in row)
    told = " ".join(found.cautions)
    for word in ("protect different things", "different data sets", "one and two <2>"):
        assert word in told
    text = compare_page({"one": card, "two <2>": other})
    assert "two &lt;2&gt;" in text
    assert specs_in(text)["accuracy-0"]["data"][0]["y"] == [score.value.value for score in shareable(card).scores]
    with pytest.raises(InvalidInput, match="runs are none"):
        compare({})


def test_compare_has_shareable_scores_of_compared_methods() -> None:
    """Fails when a compared method that report show lists is left out, stands beside the ε of the whole run or under
    its own name alone, an internal one gets in, or nobody says that the ε of the lines are of different things."""
    card = trained()
    found = compare({"one": card})
    trial = card.compared[1].value
    (row,) = [row for row in found.rows if row[2] == "output perturbation"]
    assert row[:4] == ("one", card.data.value, "output perturbation", up(trial.epsilon))
    assert row[3] != up(card.privacy.guarantee.value.epsilon.upper)
    assert [row[2] for row in found.rows].count(card.method.value) == 2
    assert not any(row[2] == "none" for row in found.rows)
    assert [type(each) for each in found.trials] == [Release] * 3
    assert [each.value.run for each in found.trials] == ["one"] * 3
    assert any("more than one model was released by one" in each for each in found.cautions)
    assert any("one (output perturbation)" in each for each in found.verdicts)
    assert "more than one model was released by one" in compare_page({"one": card})
    assert not any("more than one model" in each for each in compare({"a": replace(card, compared=())}).cautions)


def test_compare_cautions_that_epsilon_adds_up_wherever_two_runs_share_data() -> None:
    """Fails when a third run on other data hides that the ε of the first two add up, or runs on different data are
    said to add up."""
    card = replace(trained(), compared=())
    other = replace(card, data=Public("faces"))
    said = "each ε is that of one run; on the same data they add up, as the ledger counts them"
    cards = {"a": card, "b": card, "c": other}
    assert f"{said} (a and b on digits)" in compare(cards).cautions
    assert f"{said} (a and b on digits)" in compare_page(cards)
    assert f"{said} (a and b on digits; c and d on faces)" in compare(cards | {"d": other}).cautions
    assert said in compare({"a": card, "b": card}).cautions
    assert not any("add up" in each for each in compare({"a": card, "c": other}).cautions)


def test_stored_runs_keep_their_types() -> None:
    """Fails when a score that was internal in its own run becomes public or paid for in another's figure."""
    kinds = [type(trial) for trial in trials_of("before", trained())]
    assert kinds == [Release, Release, Internal]
    card = replace(trained(), stored=trials_of("before", trained()))
    assert len(shareable(card).stored) == 2


def printed(internal: bool) -> str:
    console = Console(width=110, file=io.StringIO())
    console.print(show(trained() if internal else shareable(trained())))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_card_as_text() -> None:
    """Fails when the text lacks the guarantee, the bill or the red line, or shows what is internal to everybody."""
    text = printed(internal=False)
    upper = up(trained().privacy.guarantee.value.epsilon.upper)
    for words in (f"ε ≤ {upper}", "protects nobody", "the model, by DP-SGD", "noise multiplier", "No attack was run"):
        assert words in text
    assert "INTERNAL" not in text
    assert "training rows   INTERNAL" in printed(internal=True)


def test_notebook_tables(tmp_path: Path) -> None:
    """Fails when a table lacks the promise, hides seeded noise, prints a large value whole, or lets markup through."""
    noise = DiscreteGaussianMechanism(5.0)
    release = noise.release(Count()([True] * 40), rng=SeededRng(3), source="<b>clinic</b>")
    text = release_table(release)
    assert "&lt;b&gt;clinic&lt;/b&gt;" in text
    assert "protects nobody" in text
    assert "not priced yet" in text
    assert f"<td>{release.value}</td>" in text
    secure = Release.of([1] * 999, Laplace(1.0), unit=Unit(), source="x", randomness=Randomness.SECURE)
    assert "protects nobody" not in release_table(secure)
    assert "<td>list</td>" in release_table(secure)
    assert "…" in release_table(secure.map(lambda value: "x" * 999))
    guarantee = trained().privacy.guarantee.value
    assert up(guarantee.epsilon.upper) in guarantee_table(guarantee)
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("clinic", epsilon=3.0, delta=1e-5)
        shown = Elements(ledger_table(ledger))
    assert "clinic" in shown.text
    assert "ε 3.000, δ 1e-05" in shown.text
