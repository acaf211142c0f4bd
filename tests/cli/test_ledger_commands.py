"""`privet ledger`: what the commands show is what the ledger holds, and what they refuse stays as it was."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from privet.core.event import Approximate, DiscreteLaplace, Event, Gaussian, Poisson, Repeated, Sampled
from privet.ledger import Ledger, State
from privet.ledger.schema import CHAIN
from tests.cli.conftest import Run
from tests.cli.test_errors import refused

RUN = Repeated(Sampled(Gaussian(1.1), by=Poisson(256 / 60000)), 1000)


@pytest.fixture
def spent(privet: Run) -> Iterator[tuple[Ledger, str]]:
    """A ledger with one committed count and one reservation; gives the reservation's id."""
    assert privet("ledger create clinic --epsilon 3 --delta 1e-6").code == 0
    with Ledger("privet-ledger.db") as ledger:
        with ledger.reserve("clinic", DiscreteLaplace(10.0, 1), purpose="patients over 60").drawing():
            pass
        yield ledger, ledger.reserve("clinic", RUN, purpose="a model").id


def test_a_new_budget(privet: Run) -> None:
    """Fails when the unit, ε or δ that were typed are not those of the budget, or a budget can be made anew."""
    words = "ledger create clinic --epsilon 3 --delta 1e-6 --neighbours replace --records 4 --ledger other.db"
    done = privet(words)
    assert (done.code, done.err) == (0, "")
    assert "clinic: ε = 3, δ = 1e-06 for one user with at most 4 records, replaced by another" in done.out
    with Ledger("other.db") as ledger:
        budget = ledger.budget("clinic")
    assert (budget.epsilon, budget.delta, budget.unit.records) == (3.0, 1e-6, 4)
    assert budget.head in done.out
    assert "already, and it cannot be made anew; see: privet ledger show clinic\n" in refused(privet(words))
    assert not Path("privet-ledger.db").exists()


def test_the_ledger_may_be_named_by_the_environment(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when PRIVET_LEDGER is ignored, or is stronger than what was typed."""
    monkeypatch.setenv("PRIVET_LEDGER", "named.db")
    assert privet("ledger create clinic --epsilon 3 --delta 1e-6").code == 0
    assert Path("named.db").exists()
    assert privet("ledger create clinic --epsilon 3 --delta 1e-6 --ledger typed.db").code == 0
    assert Path("typed.db").exists()


def test_list(privet: Run, spent: tuple[Ledger, str]) -> None:
    """Fails when a budget is not listed, or as JSON with other numbers than the ledger's own."""
    assert privet("ledger create school --epsilon 1 --delta 1e-8").code == 0
    done = privet("ledger list")
    assert (done.code, done.err) == (0, "")
    assert [name for name in ("clinic", "school") if name in done.out] == ["clinic", "school"]
    rows = {row["name"]: row for row in privet("ledger list --json").json["budgets"]}
    ledger, _ = spent
    assert set(rows) == {"clinic", "school"}
    assert rows["clinic"]["epsilon_left"] == ledger.budget("clinic").epsilon_left < 3
    assert rows["school"]["head"] == ledger.head("school")


def test_show(privet: Run, spent: tuple[Ledger, str]) -> None:
    """Fails when an entry, its state, the head, or the words that the plan's price is no guarantee are missing."""
    ledger, waiting = spent
    done = privet("ledger show clinic")
    assert (done.code, done.err) == (0, "")
    for text in ("committed", "patients over 60", "reserved", "a model", waiting, ledger.head("clinic")):
        assert text in done.out
    assert "had it been planned in advance; not a guarantee" in done.out
    assert "Repeated(Sampled(Gaussian(1.1)" in done.out
    statement = privet("ledger show clinic --json").json["statement"]
    assert [entry["state"] for entry in statement["entries"]] == ["reserved", "committed"]
    assert statement["planned"]["epsilon"]["upper"] > 0
    assert statement["note"] == "had it been planned in advance; not a guarantee"
    only = privet("ledger show clinic --open --json").json["statement"]["entries"]
    assert [entry["id"] for entry in only] == [waiting]


KEPT: dict[str, tuple[float, Event | None, str]] = {
    "nothing charged": (1e-6, None, ""),
    "by its curve": (1e-6, DiscreteLaplace(10.0, 1), "Blocks may take half of δ; the other half is kept for entries"),
    "as a whole": (1e-6, Approximate(0.1, 1e-6), "what is left of ε is for entries that need no δ"),
    "everything": (1e-6, Approximate(3.0, 1e-6), ""),
    "a budget without δ": (0.0, DiscreteLaplace(10.0, 1), ""),
}


@pytest.mark.parametrize("case", KEPT)
def test_show_says_why_not_all_of_delta_is_left(privet: Run, case: str) -> None:
    """Fails when a charge leaves less δ than it took and nobody says why, or when it is said where it is not so."""
    delta, event, said = KEPT[case]
    assert privet(f"ledger create clinic --epsilon 3 --delta {delta}").code == 0
    with Ledger("privet-ledger.db") as ledger:
        if event is not None:
            ledger.reserve("clinic", event)
        budget = ledger.budget("clinic")
    out = privet("ledger show clinic").out
    lines = [line for line in out.splitlines() if "half of δ" in line or "need no δ" in line]
    assert len(lines) == (1 if said else 0)
    assert said in out
    if case == "by its curve":
        assert budget.delta_left == pytest.approx(delta / 2)
    if case == "as a whole":
        assert (budget.basic, budget.delta_left) == (True, 0)


def test_only_an_open_order_counts_as_room(privet: Run) -> None:
    """Fails when a budget that a plan took whole is told as emptier than it is, by an order that the plan closed."""
    assert privet("ledger create clinic --epsilon 3 --delta 1e-6").code == 0
    with Ledger("privet-ledger.db") as ledger:
        ledger.reserve("clinic", Approximate(0.03, 1e-6))
        budget = ledger.budget("clinic")
    assert budget.basic
    assert min(budget.used) < 0.009
    assert "spent 1.0 %; left, as one block: ε 2.969" in privet("ledger show clinic").out


def test_spent_and_left_that_do_not_add_up_are_explained(privet: Run) -> None:
    """Fails when 18 % are spent, ε 0.6 of 1 is left, and nobody says why; or when it is said where they do add up."""
    assert privet("ledger create clinic --epsilon 1 --delta 1e-6").code == 0
    with Ledger("privet-ledger.db") as ledger:
        ledger.reserve("clinic", Gaussian(12.0))
        budget = ledger.budget("clinic")
    assert min(budget.used) + budget.epsilon_left < 0.9
    assert "so that spent and left do not add up to 100 %." in privet("ledger show clinic").out
    assert privet("ledger create ward --epsilon 1 --delta 1e-6").code == 0
    with Ledger("privet-ledger.db") as ledger:
        ledger.reserve("ward", DiscreteLaplace(10.0, 1))
    assert "do not add up" not in privet("ledger show ward").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--epsilon 1e300 --delta 1e-6", "ε is above 10, which is weak"),
        ("--epsilon 1 --delta 0.5", "δ = 0.5 is large: with that probability any record may be published"),
        ("--epsilon 1 --delta 0.5 --whose user", "any user's data may be published"),
    ],
)
def test_a_weak_budget_is_warned_about(privet: Run, words: str, said: str) -> None:
    """Fails when a budget that protects nobody, and cannot be changed, is made without a word."""
    done = privet("ledger create clinic", words)
    assert (done.code, done.err) == (0, "")
    beware = done.out[done.out.index("Warnings") :]
    assert said in beware
    assert "a budget cannot be changed" in beware
    assert "Warnings" not in privet("ledger create ward --epsilon 3 --delta 1e-6").out


def test_a_budget_without_a_key_is_not_called_broken(privet: Run) -> None:
    """Fails when `verify` with a key tells people to restore a backup of a budget that was made without one."""
    Path("ledger.key").write_text("a" * 64)
    assert privet("ledger create ward --epsilon 3 --delta 1e-6").code == 0
    assert privet("ledger create clinic --epsilon 3 --delta 1e-6 --key-file ledger.key").code == 0
    done = privet("ledger verify --key-file ledger.key")
    assert (done.code, done.err) == (1, "")
    assert "ward: made without a key, or rewritten since" in done.out
    assert "not proven by the key: ward\n" in done.out
    assert "intact: clinic (every seal was checked with the key)" in done.out
    assert "broken" not in done.out
    assert "backup" not in done.out
    answer = privet("ledger verify --key-file ledger.key --json").json
    assert (answer["intact"], answer["verification"]["unproven"]) == (False, ["ward"])
    with Ledger("privet-ledger.db") as ledger:
        head = ledger.head("ward")
    assert privet("ledger verify ward --key-file ledger.key --head", head).code == 0


def test_the_same_file_is_bound_once(privet: Run) -> None:
    """Fails when a file becomes the next version of itself, or an empty one stands for a data set."""
    Path("one.csv").write_text("age\n41\n")
    Path("empty.csv").touch()
    assert privet("ledger create clinic --epsilon 3 --delta 1e-6 --fingerprint-of one.csv").code == 0
    line = refused(privet("ledger bind clinic --fingerprint-of one.csv --note again"))
    assert "version 1 of 'clinic' is bound to this data already; nothing was changed" in line
    line = refused(privet("ledger create ward --epsilon 3 --delta 1e-6 --fingerprint-of empty.csv"))
    assert "--fingerprint-of names the file 'empty.csv', which is empty" in line


def test_more_entries_than_there_can_be(privet: Run, spent: tuple[Ledger, str]) -> None:
    """Fails when a number that no database can count to is blamed on the machine's memory."""
    assert privet("ledger show clinic --last 1e30").out == privet("ledger show clinic").out


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_an_id_is_never_broken(
    privet: Run, spent: tuple[Ledger, str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Fails when a narrow terminal breaks an entry's id over two lines, so that it cannot be copied."""
    ledger, _ = spent
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = privet("ledger show clinic").out
    assert all(entry.id in shown for entry in ledger.show("clinic").entries)


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("words", ["ledger list", "ledger show clinic"])
def test_no_word_is_broken(
    privet: Run, spent: tuple[Ledger, str], monkeypatch: pytest.MonkeyPatch, words: str, columns: int
) -> None:
    """Fails when a narrow terminal shows "entrie" and "s" on two lines, or cuts an event in the middle of its name."""
    wide = privet(words).out
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = privet(words).out
    wanted = {word.strip(":") for word in wide.split() if not set(word) <= {"─"}}
    assert wanted <= {word.strip(":") for word in narrow.split()}
    assert "purpose: patients over 60\n" in narrow if "show" in words else "entries: 2\n" in narrow
    table = narrow[narrow.find("Entries, the newest") : narrow.find("Spent is counted")] if "show" in words else narrow
    assert max(map(len, table.splitlines())) <= columns


def test_a_file_gets_the_whole_table(privet: Run, spent: tuple[Ledger, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a table in a file is squeezed into the 80 columns of no terminal at all."""
    wide = privet("ledger list").out
    monkeypatch.delenv("COLUMNS")
    assert privet("ledger list").out == wide


def test_release(privet: Run, spent: tuple[Ledger, str]) -> None:
    """Fails when a reservation cannot be given back, or one that was drawn can."""
    ledger, waiting = spent
    done = privet("ledger release", waiting)
    assert (done.code, done.err) == (0, "")
    assert ledger.entry(waiting).state is State.ABORTED
    drawn = next(entry for entry in ledger.show("clinic").entries if entry.state is State.COMMITTED)
    assert "committed" in refused(privet("ledger release", drawn.id))
    assert ledger.entry(drawn.id).state is State.COMMITTED
    assert "there is no entry 'nosuch'" in refused(privet("ledger release nosuch"))


def test_the_beginning_of_an_id_is_enough(privet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when what the help shows does not work, or when a beginning that several entries share releases one."""
    ids = iter(["3f2a9c0000000001", "3f2a9c0000000002", "3f2a9d0000000003"])
    monkeypatch.setattr(secrets, "token_hex", lambda size: next(ids) if size == 8 else "00" * size)
    with Ledger("privet-ledger.db") as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
        for _ in range(3):
            ledger.reserve("clinic", DiscreteLaplace(100.0, 1))
    assert "several entries begin with '3f2a9c'; give more of the id" in refused(privet("ledger release 3f2a9c"))
    assert "there is no entry '3f2a9'" in refused(privet("ledger release 3f2a9"))
    assert "there is no entry '3f2a9e'" in refused(privet("ledger release 3f2a9e"))
    done = privet("ledger release 3f2a9d")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("3f2a9d0000000003 of clinic is aborted")
    assert privet("ledger release 3f2a9c0000000001").code == 0
    assert privet("ledger show clinic --json").json["statement"]["budget"]["active"] == 1


def test_verify(privet: Run, spent: tuple[Ledger, str]) -> None:
    """Fails when an edited entry passes, when it is not told apart from bad input, or when a whole chain is doubted."""
    ledger, _ = spent
    head = ledger.head("clinic")
    done = privet("ledger verify")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("intact: clinic")
    assert privet("ledger verify clinic --head", head).code == 0
    assert privet("ledger verify --json").json["intact"] is True
    ledger.close()
    with sqlite3.connect("privet-ledger.db") as raw:
        changed = raw.execute(f"UPDATE {CHAIN.name} SET body = replace(body, 'over 60', 'over 90')").rowcount  # noqa: S608
    raw.close()
    assert changed > 0
    broken = privet("ledger verify")
    assert (broken.code, broken.err) == (1, "")
    assert "broken: clinic" in broken.out
    answer = privet("ledger verify --json")
    assert answer.code == 1
    assert answer.json["intact"] is False
    assert answer.json["verification"]["problems"]


def test_a_cut_tail_is_found_with_the_head(privet: Run, spent: tuple[Ledger, str]) -> None:
    """Fails when --head does not reach the check."""
    ledger, _ = spent
    length, hash_ = ledger.head("clinic").split(":")
    longer = f"{int(length) + 1}:{hash_}"
    done = privet("ledger verify clinic --head", longer)
    assert done.code == 1
    assert "tail was cut" in done.out


def test_bind(privet: Run) -> None:
    """Fails when the fingerprint is not that of the file, is shown, or a second version makes a second budget."""
    Path("one.csv").write_text("age\n41\n")
    Path("two.csv").write_text("age\n41\n42\n")
    assert privet("ledger create clinic --epsilon 3 --delta 1e-6 --fingerprint-of one.csv").code == 0
    done = privet("ledger bind clinic --fingerprint-of two.csv --note 'June, corrected'")
    assert (done.code, done.err) == (0, "")
    assert "version 2" in done.out
    assert [row["version"] for row in privet("ledger list --json").json["budgets"]] == [2]
    line = refused(privet("ledger bind clinic --fingerprint-of three.csv --note x"))
    assert line.endswith(
        "--fingerprint-of names the file 'three.csv', which cannot be read: no such file or directory; check the path\n"
    )


def test_a_key_seals_the_chain(privet: Run) -> None:
    """Fails when --key-file does not reach the ledger."""
    Path("ledger.key").write_text("a" * 64)
    assert privet("ledger create clinic --epsilon 3 --delta 1e-6 --key-file ledger.key").code == 0
    assert "every seal was checked" in privet("ledger verify --key-file ledger.key").out
    assert "without a key" in privet("ledger verify").out
    line = refused(privet("ledger verify --key-file nowhere.key"))
    assert "--key-file names the file 'nowhere.key', which cannot be read: no such file or directory; check" in line


BAD = {
    "ledger list": "there is no ledger at",
    "ledger show clinic": "there is no ledger at",
    "ledger create clinic --epsilon nan --delta 1e-6": "--epsilon is nan",
    "ledger create clinic --epsilon 1 --delta 1": "--delta is 1.0",
    "ledger create clinic --epsilon 1 --delta 1e-6 --records 0": "--records is 0",
    "ledger create clinic --epsilon 1": "missing: --delta; see privet ledger create --help, or try: ",
    "ledger create '' --epsilon 1 --delta 1e-6": "name is empty",
    "ledger create clinic --epsilon 1 --delta 1e-6 --ledger nowhere/x.db": "make its folder first",
    "ledger create clinic --epsilon 1 --delta 1e-6 --ledger mysql://x/y": "--ledger names mysql",
    "ledger create clinic --epsilon 1 --delta 1e-6 --wait 0": "--wait is 0.0",
    "ledger list --ledger page.txt": "is not a ledger; it was left as it is",
    "ledger verify --head 3:ab": "--head belongs to one budget",
    "ledger verify clinic --head xyz": "--head is 'xyz', which is no head",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_refused_in_one_line(privet: Run, words: str) -> None:
    """Fails when bad input makes a ledger, changes a file, or ends in anything but one line."""
    Path("page.txt").write_text("something else, and long enough to be looked at as a database")
    assert BAD[words] in refused(privet(words))
    assert [path.name for path in Path.cwd().iterdir()] == ["page.txt"]
    assert Path("page.txt").read_text().startswith("something else")


def test_an_unknown_budget(privet: Run, spent: tuple[Ledger, str]) -> None:
    """Fails when a name that is not there is made, or ends in more than one line."""
    assert "there is no budget for 'nobody'" in refused(privet("ledger show nobody"))
    assert "there is no budget for 'nobody'" in refused(privet("ledger verify nobody"))


def test_a_locked_ledger(privet: Run, spent: tuple[Ledger, str]) -> None:
    """Fails when another process that holds the file ends in a traceback, or is waited for without end."""
    other = sqlite3.connect("privet-ledger.db", isolation_level=None)
    try:
        other.execute("BEGIN EXCLUSIVE")
        line = refused(privet("ledger create school --epsilon 1 --delta 1e-6 --wait 0.2"))
        assert "is locked by another process; nothing was changed" in line
    finally:
        other.close()
