"""`make quick` picks the tests that concern a change."""

from __future__ import annotations

from pathlib import Path

from tools.quick.selection import imported_by, modules_of, select_tests

ROOT = Path(__file__).parents[2]


def test_quick_runs_tests_that_import_a_changed_module_first() -> None:
    """Fails when tests of a changed module are left out, or come after those of its room that do not use it."""
    changed = [Path("src/privet/ledger/charge.py"), Path("docs/index.md")]
    assert modules_of(changed) == {"privet.ledger.charge"}
    selected = select_tests(changed)
    using = [path for path in selected if "privet.ledger.charge" in imported_by(ROOT / path)]
    others = [path for path in selected if path.parts[1] == "ledger" and path not in using]
    assert using
    assert others
    assert max(map(selected.index, using)) < min(map(selected.index, others))
    assert Path("tests/house/test_checks.py") in selected


def test_quick_runs_changed_tests_themselves() -> None:
    """Fails when somebody who changes a test does not see it run."""
    changed = Path("tests/house/test_quick.py")
    assert select_tests([changed])[0] == changed
