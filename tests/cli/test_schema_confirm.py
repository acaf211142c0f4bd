"""`privet schema confirm`, and the commands that refuse a schema without it."""

from __future__ import annotations

import io
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from privet.data import Schema, SourceKind
from privet.ledger import Ledger
from tests.cli.conftest import Run
from tests.cli.training import SCHEMA as VOUCHED_SCHEMA

SCHEMA = "# patients of the clinic\n" + re.sub(r"source = .*\n", "", VOUCHED_SCHEMA)
"""As it was written before sources existed."""


@pytest.fixture
def old(privet: Run) -> Run:
    """`privet`, in a folder with a schema that was written before sources existed."""
    Path("old.toml").write_text(SCHEMA)
    return privet


def sources(path: str = "old.toml") -> dict[str, Any]:
    return dict(Schema.from_toml(Path(path).read_text()).sources())


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_confirm_asks_for_each_column(old: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a column is not asked for, one answer serves for two, or who vouched and when is not written."""
    typed(monkeypatch, "Ada Lovelace", "", "d", "rows", "codebook", "l")
    done = old("schema confirm old.toml")
    assert done.code == 0, done.err
    assert "1 of 3  age: number from 18 to 100" in done.out
    assert "2 of 3  ward: category: north, south" in done.out
    assert "'rows' is none of them." in done.out
    found = sources()
    assert [each.kind for each in found.values()] == [
        SourceKind.DOMAIN_LIMIT,
        SourceKind.CODEBOOK,
        SourceKind.LEARNED,
    ]
    assert {each.by for each in found.values()} == {"Ada Lovelace"}
    assert {each.on for each in found.values()} == {datetime.now(UTC).date()}
    assert Path("old.toml").read_text().startswith("# patients of the clinic\n")
    assert "Somebody vouches for the source of every column" in old("schema confirm old.toml").out


def test_confirm_has_no_answer_for_all_columns(old: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when one word, or one option, confirms columns that nobody looked at."""
    typed(monkeypatch, "Ada", "all", "yes", "*")
    done = old("schema confirm old.toml")
    assert done.code != 0
    assert set(sources().values()) == {None}
    for option in ("--source codebook", "--source all=codebook", "--source *=codebook", "--all"):
        done = old(f"schema confirm old.toml --by Ada {option}")
        assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert set(sources().values()) == {None}


def test_confirm_keeps_answers_when_interrupted(old: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when answers before the end of the input are lost, or an unanswered column gets a source."""
    typed(monkeypatch, "c")
    assert old("schema confirm old.toml --by Ada").code != 0
    assert [source is None for source in sources().values()] == [False, True, True]
    typed(monkeypatch, "n", "q")
    done = old("schema confirm old.toml --by Bo")
    assert done.code == 1
    assert "1 of 2  ward" in done.out
    assert "Nobody vouches yet for the source of: ward, readmitted." in done.out
    found = sources()
    assert (found["age"].by, found["ward"], found["readmitted"]) == ("Ada", None, None)


def test_confirm_keeps_a_draft_private(clinic: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a draft of private rows becomes readable for others, or keeps its warning once it is confirmed."""
    assert clinic("schema draft patients.csv --target readmitted --out draft.toml").code == 0
    assert set(sources("draft.toml").values()) == {None}
    given = " ".join(f"--source {name}=codebook" for name in sources("draft.toml"))
    assert clinic(f"schema confirm draft.toml --by Ada {given}").code == 0
    assert stat.S_IMODE(Path("draft.toml").stat().st_mode) == 0o600
    assert "This draft was read" not in Path("draft.toml").read_text()


@pytest.mark.parametrize(
    "line",
    [
        "train patients.csv --schema draft.toml --epsilon 1 --budget clinic --out run",
        "train patients.csv --schema draft.toml --epsilon 1 --method input --out run",
        "pate patients.csv --schema draft.toml --public public/patients.csv --epsilon 1 --out run",
        "query patients.csv 'mean(age)' 'count by ward' --schema draft.toml --epsilon 1",
    ],
)
def test_draft_is_refused_by_every_command(clinic: Run, line: str) -> None:
    """Fails when the untouched draft of private rows passes for public knowledge, or a refusal costs something."""
    Path("privet-ledger.db").unlink(missing_ok=True)
    assert clinic("ledger create clinic --epsilon 2 --delta 1e-4").code == 0
    assert clinic("schema draft patients.csv --target readmitted --out draft.toml").code == 0
    done = clinic(line)
    assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert "schema has no source for the bounds or values of 'age', 'ward'" in done.err
    assert "privet schema confirm draft.toml" in done.err
    assert not Path("run").exists()
    with Ledger("privet-ledger.db") as ledger:
        assert not ledger.show("clinic").entries
    # Sources alone are not enough: somebody vouches for them.
    text = Path("draft.toml").read_text()
    text = text.replace('kind = "number"', 'kind = "number"\nsource = "codebook"')
    Path("draft.toml").write_text(text.replace('kind = "category"', 'kind = "category"\nsource = "codebook"'))
    done = clinic(line)
    assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert "names nobody who vouches for the source of 'age', 'ward'" in done.err


def test_confirmation_is_on_the_card(clinic: Run) -> None:
    """Fails when a card does not say who vouched for the bounds, when, and that the guarantee rests on it; or when a
    card is signed whose schema has no source, by an edit of its text."""
    assert clinic("train patients.csv --schema schema.toml --epsilon 1 --epochs 1 --out run").code == 0
    from privet.report import read_card

    card = read_card(Path("run"))
    said = [each for each in card.privacy.guarantee.value.assumptions if "vouched" in each]
    assert said == [
        (
            "the bounds or values of 'age', 'ward', 'readmitted' come from a codebook and not from the private rows "
            "(Ada Lovelace vouched for this on 2026-11-18)"
        )
    ]
    assert card.schema is not None
    assert 'by = "Ada Lovelace", on = 2026-11-18' in card.schema.value
    assert "Ada Lovelace vouched for this on 2026-11-18" in Path("run/report.html").read_text()
    assert clinic("card key signer.pem").code == 0
    assert clinic("card sign run --key signer.pem").code == 0
    assert clinic("card verify run --key signer.pem.pub").code == 0
    source = 'source = { kind = \\"codebook\\", by = \\"Ada Lovelace\\", on = 2026-11-18 }\\n'
    text = Path("run/card.json").read_text()
    assert source in text
    assert "high = 100\\n" in text
    for before, after, problem in (
        (source, "", "without a source for the bounds or values of 'age', 'ward', 'readmitted'"),
        (source, 'source = \\"codebook\\"\\n', "column 'age' names nobody who vouches for its source"),
        ("high = 100\\n", "high = 94\\n", "another schema than model.json"),
    ):
        Path("run/card.json").write_text(text.replace(before, after))
        done = clinic("card sign run --key signer.pem --renew")
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert problem in done.err


def test_old_run_resumes_after_its_schema_is_confirmed(clinic: Run) -> None:
    """Fails when a stored answer is charged again because its schema now says where bounds come from."""
    assert clinic("ledger create clinic --epsilon 2 --delta 1e-4").code == 0
    ask = "query patients.csv 'mean(age)' --schema schema.toml --epsilon 0.5 --budget clinic --json"
    first = clinic(ask)
    assert first.code == 0, first.err
    assert (
        clinic(
            "schema confirm schema.toml --by Bo --again --source 'age=domain limit' --source ward=codebook "
            "--source readmitted=codebook"
        ).code
        == 0
    )
    again = clinic(ask)
    assert again.json["answers"][0]["free"]
    assert again.json["charged"] is None


def test_confirm_replaces_nobodys_word_unasked(old: Run) -> None:
    """Fails when one person's word replaces another's without --again, a reference is kept for another kind of source,
    or an answer for one column asks for the others."""
    assert old("schema confirm old.toml --by Ada --source age=codebook").code == 1  # others are left
    text = Path("old.toml").read_text().replace("on = 20", 'reference = "form 12", on = 20', 1)
    Path("old.toml").write_text(text)
    done = old("schema confirm old.toml --by Bo --source 'age=domain limit'")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "for which Ada vouched on" in done.err
    assert old("schema confirm old.toml --by Bo --source age=codebook --source age=codebook --again").code == 2
    assert old("schema confirm old.toml --by Bo --source age=codebook --again").code == 1
    assert (sources()["age"].by, sources()["age"].reference) == ("Bo", "form 12")
    assert old("schema confirm old.toml --by Cy --source 'age=domain limit' --again").code == 1
    assert (sources()["age"].by, sources()["age"].reference) == ("Cy", None)


def test_confirm_keeps_the_file_as_it_is(old: Run) -> None:
    """Fails when a link is replaced by a file, the mode changes, or a read-only file is written."""
    Path("old.toml").chmod(0o640)
    Path("link.toml").symlink_to("old.toml")
    assert old("schema confirm link.toml --by Ada --source age=codebook").code == 1
    assert Path("link.toml").is_symlink()
    assert sources()["age"].by == "Ada"
    assert stat.S_IMODE(Path("old.toml").stat().st_mode) == 0o640
    Path("old.toml").chmod(0o440)
    done = old("schema confirm old.toml --by Ada --source ward=codebook")
    assert (done.code, sources()["ward"]) == (2, None)
    assert "read-only" in done.err


def test_confirmed_bounds_are_not_edited_later(clinic: Run) -> None:
    """Fails when bounds that were changed after somebody vouched for them still pass under their name."""
    given = "--source 'age=domain limit' --source ward=codebook --source readmitted=codebook"
    assert clinic(f"schema confirm schema.toml --by Ada --again {given}").code == 0
    assert clinic("query patients.csv 'mean(age)' --schema schema.toml --epsilon 1").code == 0
    Path("schema.toml").write_text(Path("schema.toml").read_text().replace("high = 100", "high = 94"))
    done = clinic("query patients.csv 'mean(age)' --schema schema.toml --epsilon 1")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "other bounds or values of 'age' than were vouched for" in done.err


def test_confirm_interrupted_at_any_prompt_says_how_to_continue(old: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when an interruption passes for an end, loses answers, or differs from prompt to prompt."""
    for by, lines, answered in (("", (), 0), ("--by Ada", (), 0), ("--by Ada", ("c",), 1), ("", ("Bo", "d"), 2)):
        typed(monkeypatch, *lines)
        done = old(f"schema confirm old.toml {by}")
        assert done.code == 130
        assert done.err.strip() == (
            "Interrupted. Answers so far are in the file. Continue with: privet schema confirm old.toml"
        )
        assert [source is None for source in sources().values()].count(False) == answered
    typed(monkeypatch, "c")
    assert old("schema confirm old.toml --by Cy").code == 0
    typed(monkeypatch, "d")
    done = old("schema confirm old.toml --by Di --again")
    assert done.code == 130
    assert "Continue with: privet schema confirm old.toml --again" in done.err
    assert "every column has a source" not in done.out
    assert [source.by for source in sources().values()] == ["Di", "Bo", "Cy"]


def test_confirm_again_names_columns_that_were_not_confirmed(old: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when leaving early passes for a new confirmation of all columns."""
    typed(monkeypatch, "c", "c", "c")
    assert old("schema confirm old.toml --by Ada").code == 0
    typed(monkeypatch, "d", "n", "q")
    done = old("schema confirm old.toml --by Bo --again")
    assert done.code == 1
    assert "Not confirmed again, so that the earlier source stays: ward, readmitted." in done.out
    assert "every column has a source" not in done.out
    assert [source.by for source in sources().values()] == ["Bo", "Ada", "Ada"]


def test_confirm_says_what_is_wrong_with_its_options(old: Run) -> None:
    """Fails when a missing equals sign is called an unknown column, or a page of text passes for a name."""
    done = old("schema confirm old.toml --by Ada --source age")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "--source is 'age', which has no `=` between a column and its source" in done.err
    done = old(f"schema confirm old.toml --by {'A' * 201} --source age=codebook")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "--by has 201 characters; use 200 at most" in done.err
    assert set(sources().values()) == {None}
    assert old(f"schema confirm old.toml --by {'A' * 200} --source age=codebook").code == 1


def test_confirm_shows_and_seals_what_missing_cells_count_as(old: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when somebody vouches for a rule that they were not shown, or it can be changed afterwards."""
    text = SCHEMA.replace("high = 100", 'high = 100\nmissing = 54.2\noutside = "missing"')
    Path("old.toml").write_text(text.replace('["north", "south"]', '["north", "south"]\nmissing = "south"'))
    typed(monkeypatch, "c", "c", "c")
    done = old("schema confirm old.toml --by Ada")
    assert "number from 18 to 100, missing cells count as 54.2, cells beyond the bounds count as missing" in done.out
    assert "category: north, south, missing cells count as south" in done.out
    assert old("schema check old.toml").code == 0
    Path("old.toml").write_text(Path("old.toml").read_text().replace("54.2", "54.3"))
    assert old("schema check old.toml").code == 1


def test_confirm_keeps_a_byte_order_mark(old: Run) -> None:
    """Fails when a schema of an editor that writes a byte order mark is refused, or loses the mark."""
    Path("old.toml").write_text(SCHEMA, encoding="utf-8-sig")
    assert old("schema confirm old.toml --by Ada --source age=codebook").code == 1
    assert Path("old.toml").read_bytes().startswith(b"\xef\xbb\xbf# patients")
