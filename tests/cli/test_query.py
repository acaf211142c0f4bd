"""`privet query`: answers on a terminal, in JSON and on a page; one line and no charge for what cannot be asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privet.data import Category, Identifier, Number, Schema
from privet.ledger import Ledger, State
from tests.cli.conftest import Done, Run
from tests.cli.test_errors import refused
from tests.cli.test_page import specs_in
from tests.data.sources import sourced
from tests.query.tables import clinic

SCHEMA = sourced(
    Schema(
        (
            Number("age", 0, 100),
            Number("bmi", 10, 60),
            Category("ward", ("north", "south")),
            Category("sick", ("0", "1")),
            Category("town", ()),
            Identifier("id"),
        )
    )
)


@pytest.fixture
def table(privet: Run) -> Run:
    """A table, its schema beside it, and a budget."""
    clinic(600).write_csv("clinic.csv")
    Path("clinic.schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    assert privet("ledger create clinic --epsilon 3 --delta 1e-5").code == 0
    return privet


def states() -> list[State]:
    with Ledger("privet-ledger.db") as ledger:
        return [entry.state for entry in ledger.show("clinic", planned=False).entries]


def good(done: Done) -> Done:
    assert (done.code, done.err) == (0, "")
    return done


def test_answers_on_a_terminal(table: Run) -> None:
    """Fails when an answer, a group, a note, the price or the charge is not shown."""
    words = "--epsilon 0.5 --budget clinic"
    shown = good(table("query clinic.csv 'count where sick = 1' 'mean(age) by ward'", words)).out
    for part in ("count where sick = 1", "mean(age) by ward", "north", "(other)", "95 % from", "that bias is not in"):
        assert part in shown
    assert "ε ≤ 0.500 at δ = 0 for one example, added or removed" in shown
    assert "charged to clinic; head 4:" in shown
    assert states() == [State.COMMITTED]


def test_the_second_time_is_free(table: Run) -> None:
    """Fails when the same question is charged again, or answered differently."""
    words = "query clinic.csv 'mean(age)' --epsilon 0.5 --budget clinic"
    first = good(table(words, "--json")).json
    again = good(table(words, "--json")).json
    assert again["answers"][0]["rows"] == first["answers"][0]["rows"]
    assert (first["answers"][0]["free"], again["answers"][0]["free"]) == (False, True)
    assert again["charged"] is None
    assert states() == [State.COMMITTED]
    shown = good(table(words)).out
    assert "mean(age), as answered before: free" in shown
    assert "nothing was charged" in shown
    assert good(table(words, "--fresh --json")).json["charged"] is not None


def test_another_confidence_of_a_stored_answer(table: Run) -> None:
    """Fails when a stored interval is shown without a word under a confidence that it does not have, or charged."""
    words = "query clinic.csv 'mean(age)' --epsilon 0.5 --budget clinic"
    assert "stored with" not in good(table(words)).out
    shown = good(table(words, "--confidence 0.99")).out
    assert "95 % from" in shown
    assert "it was stored with 95 % confidence, which is shown; 99 % needs a fresh draw" in shown
    assert states() == [State.COMMITTED]
    assert "99 % from" in good(table(words, "--confidence 0.99 --fresh")).out


def test_json(table: Run) -> None:
    """Fails when the JSON lacks an interval, the price, the chain's head or the draws."""
    found = good(table("query clinic.csv 'count by town' --epsilon 1 --delta 1e-6 --budget clinic --json")).json
    (answer,) = found["answers"]
    assert [row["group"] for row in answer["rows"]] == [["Bath"], ["Ely"], ["York"]]
    assert all(row["low"] <= row["value"] <= row["high"] for row in answer["rows"])
    assert found["charged"]["delta"] == 1e-6
    assert found["head"].startswith("4:")
    assert found["release"]["draws"][0]["source"] == "clinic"
    assert found["release"]["tainted"] is False


def test_query_without_a_budget_says_so(table: Run) -> None:
    """Fails when nobody is told that nothing keeps the bill."""
    shown = good(table("query clinic.csv count --epsilon 0.5 --schema clinic.schema.toml")).out
    assert "No budget was charged" in shown
    assert states() == []


def test_a_page(table: Run) -> None:
    """Fails when the page lacks an answer or its notes, or asks for something from elsewhere."""
    words = "query clinic.csv 'mean(age) by ward' 'median(bmi)' --epsilon 1 --budget clinic --plot page.html"
    assert "The page with the figures is page.html" in good(table(words)).out
    page = Path("page.html").read_text(encoding="utf-8")
    for part in ("mean(age) by ward", "median(bmi)", "north", "that bias is not in the interval", "default-src"):
        assert part in page
    assert 'src="http' not in page


def test_a_list_is_no_picture(table: Run) -> None:
    """Fails when the places of a list are drawn as bars, in which the last is the tallest."""
    good(table("query clinic.csv 'top(ward, 2)' 'count by ward' --epsilon 9 --plot page.html"))
    page = Path("page.html").read_text(encoding="utf-8")
    assert list(specs_in(page)) == ["answer1"]
    assert "The most frequent first: south and north." in page or "The most frequent first: north and south." in page


def test_counts_are_whole_numbers(table: Run) -> None:
    """Fails when rows are shown with decimals, whatever the noise and its interval are."""
    for words in ("count 'count by ward' 'histogram(age)' --epsilon 3", "count 'count by ward' --epsilon 900"):
        shown = good(table("query clinic.csv", words)).out
        assert not re.search(r"\d\.\d", shown.partition("ε ≤")[0])
    assert re.search(r"600 +600 +600", shown)


def test_a_table_that_cannot_be_read(table: Run) -> None:
    """Fails when a folder is called no file, or a Parquet file with changed bytes is not named."""
    Path("folder").mkdir()
    assert "'folder' is a folder" in refused(table("query folder count --epsilon 1"))
    clinic(60000).write_parquet("clinic.parquet")
    body = bytearray(Path("clinic.parquet").read_bytes())
    body[2000:4000] = bytes(2000)
    Path("clinic.parquet").write_bytes(bytes(body))
    words = "query clinic.parquet 'mean(age)' 'mean(bmi)' --epsilon 1 --budget clinic"
    assert "data 'clinic.parquet' are damaged" in refused(table(words))
    assert states() == [State.ABORTED]


def test_users(table: Run) -> None:
    """Fails when a budget for users cannot be charged with the questions of a schema that names them."""
    schema = sourced(Schema(SCHEMA.columns, user="id", most_rows_per_user=2))
    Path("users.toml").write_text(schema.to_toml(), encoding="utf-8")
    words = "query clinic.csv 'mean(age)' --epsilon 1 --schema users.toml"
    assert "unit is one user, add/remove, central, and the budget" in refused(table(words, "--budget clinic"))
    good(table("ledger create people --epsilon 3 --delta 1e-5 --whose user"))
    assert "for one user, added or removed" in good(table(words, "--budget people")).out


BAD = {
    "query clinic.csv 'mean(agee)' --epsilon 1 --budget clinic": "'mean(»agee«)', character 6: the schema has no",
    "query clinic.csv 'mean(ward)' --epsilon 1 --budget clinic": "has no bounds",
    "query clinic.csv 'count by town' --epsilon 1 --budget clinic": "--delta is 0",
    "query clinic.csv count --epsilon 0 --budget clinic": "--epsilon is 0.0, which is not positive",
    "query clinic.csv count --epsilon 1 --confidence 95 --budget clinic": "--confidence is 95, which is not between 0",
    "query clinic.csv count --epsilon 1 --confidence 0 --budget clinic": "use 0.95 for 95 %",
    "query clinic.csv count --epsilon 1 --confidence 1 --budget clinic": "use 0.95 for 95 %",
    "query clinic.csv count --epsilon 1 --confidence nan --budget clinic": "--confidence is nan",
    "query clinic.csv count --epsilon 9 --budget clinic": "refuses 'count'",
    "query clinic.csv count --epsilon 1e-320 --budget clinic": "--epsilon is 1e-320, for which noise would be larger",
    "query clinic.csv count --epsilon 1 --budget clinic --stored ./privet-ledger.db": "which is the ledger",
    "query clinic.csv count --epsilon 1 --budget clinic --stored no/x": "--stored is 'no/x', where no answers can be",
    "query clinic.csv count --epsilon 1 --budget clinik": "there is no budget for 'clinik'",
    "query clinic.csv count --epsilon 1 --budget clinic.db": "--budget is 'clinic.db', a database",
    "query clinic.csv count --epsilon 1 --ledger clinic": "now names the ledger's file or URL; to charge that budget, "
    "write: --budget clinic",
    "query clinic.csv count --epsilon 1 --ledger privet-ledger.db": "nothing would be charged; add: --budget NAME",
    "query clinic.csv count --epsilon 1 --budget clinic --schema no.toml": "is 'no.toml', which cannot be read",
    "query no.csv count --epsilon 1 --budget clinic --schema clinic.schema.toml": "'no.csv' cannot be read",
    "query clinic.csv count --epsilon 1 --budget clinic --plot page.txt": "--plot is 'page.txt', and the page is HTML",
    "query nosuch.csv count --epsilon 1 --budget clinic": "nosuch.csv' cannot be read",
    "query clinic.csv 'count where age > 200' --epsilon 1 --budget clinic": "'age' from 0 to 100, so that this is true",
    "query clinic.csv --epsilon 1": "missing: QUESTIONS",
    "query clinic.csv count": "missing: --epsilon",
}


@pytest.mark.parametrize("words", BAD)
def test_a_refusal_is_one_line_and_free(table: Run, words: str) -> None:
    """Fails when what cannot be asked is charged, or is answered with more than one line."""
    assert BAD[words] in refused(table(words))
    assert states() == []


def test_query_ledger_of_the_environment_needs_no_budget(table: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a ledger that is set once for all commands makes a query without a budget impossible."""
    monkeypatch.setenv("PRIVET_LEDGER", "privet-ledger.db")
    assert "No budget was charged" in good(table("query clinic.csv count --epsilon 1")).out


def test_rows_do_not_raise(table: Run) -> None:
    """Fails when an all-missing column, an empty group or a number beyond all bounds becomes an error."""
    rows = ["age,bmi,ward,sick,town,id", *["1e999,,?,x,,a"] * 5, *[",nan,,,,"] * 5]
    Path("clinic.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    texts = "'mean(bmi) by ward' 'variance(bmi)' 'max(age)' 'sum(age)' 'histogram(bmi)' 'top(ward, 1)' 'count by town'"
    good(table("query clinic.csv", texts, "--epsilon 1 --delta 1e-6 --budget clinic"))
    assert states() == [State.COMMITTED]
