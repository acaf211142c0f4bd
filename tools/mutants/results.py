"""The results of a run: the JSON record, the page with the table, and whether the run passes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.mutants.declarations import KINDS
from tools.mutants.trial import Outcome, Trial

__all__ = ["COMMAND", "LEAST_CAUGHT", "failures", "summary", "write"]

COMMAND = "python -m tools.mutants"
LEAST_CAUGHT = 0.97
"""The least share of mutants that must be caught."""


def failures(trials: Sequence[Trial]) -> list[str]:
    """Return why a run fails: too few caught, a survivor without a proof, or a declaration that cannot be run."""
    caught = sum(trial.outcome.is_caught for trial in trials)
    problems = []
    if caught < LEAST_CAUGHT * len(trials):
        problems.append(f"{caught} of {len(trials)} mutants are caught, fewer than {LEAST_CAUGHT:.0%}")
    for trial in trials:
        if trial.outcome is Outcome.BROKEN:
            problems.append(f"{trial.mutant.name} is broken: pytest could not run its tests")
        if trial.outcome is Outcome.SURVIVED and not trial.mutant.harmless:
            problems.append(f"{trial.mutant.name} survived: no test noticed it, and no `harmless` proves it harmless")
        if trial.outcome.is_caught and trial.mutant.harmless:
            problems.append(f"{trial.mutant.name} is caught, but declares itself harmless")
    return problems


def summary(trials: Sequence[Trial]) -> str:
    """Return a Markdown table of caught / planted mutants, a row a room and a column a kind."""
    planted = Counter((trial.mutant.room, trial.mutant.kind) for trial in trials)
    caught = Counter((trial.mutant.room, trial.mutant.kind) for trial in trials if trial.outcome.is_caught)
    rooms = sorted({room for room, _ in planted})
    rows = [["room", *KINDS, "all"], ["---"] * (len(KINDS) + 2)]
    for room in [*rooms, "all"]:
        cells = [_share(caught, planted, room, kind) for kind in [*KINDS, "all"]]
        rows.append([room, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _share(caught: Counter[tuple[str, str]], planted: Counter[tuple[str, str]], room: str, kind: str) -> str:
    found, of = (
        sum(n for (r, k), n in counts.items() if room in (r, "all") and kind in (k, "all"))
        for counts in (caught, planted)
    )
    return f"{found}/{of}" if of else ""


def write(trials: Sequence[Trial], root: Path) -> None:
    """Write `benchmarks/results/mutants.json` and `benchmarks/mutants/README.md`."""
    caught = sum(trial.outcome.is_caught for trial in trials)
    record = {
        "command": COMMAND,
        "planted": len(trials),
        "caught": caught,
        "mutants": [_record(trial) for trial in trials],
    }
    _put(root / "benchmarks" / "results" / "mutants.json", json.dumps(record, indent=1))
    _put(root / "benchmarks" / "mutants" / "README.md", _page(trials, caught))


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def _record(trial: Trial) -> dict[str, object]:
    mutant = trial.mutant
    record: dict[str, object] = {"name": mutant.name, "kind": mutant.kind, "file": mutant.file}
    record |= {"outcome": trial.outcome.value, "seconds": round(trial.seconds, 1)}
    return record | ({"harmless": mutant.harmless} if mutant.harmless else {})


def _page(trials: Sequence[Trial], caught: int) -> str:
    survivors = [trial.mutant for trial in trials if trial.outcome is Outcome.SURVIVED]
    timeouts = [trial.mutant for trial in trials if trial.outcome is Outcome.TIMEOUT]
    shown = [f"- `{mutant.name}`: {mutant.harmless or 'no proof'}" for mutant in survivors]
    ended = [f"- `{mutant.name}`: {mutant.why}" for mutant in timeouts]
    intro = (
        f"`make mutants` (`{COMMAND}`) plants {len(trials)} mistakes that would break a guarantee, one at a time, and "
        f"runs the tests named beside each. {caught} are caught ({caught / max(1, len(trials)):.1%}): at least one "
        "test fails. The declarations are in `tools/mutants/planted`, the results in `benchmarks/results/mutants.json`."
    )
    parts = [
        f"<!-- Written by `{COMMAND}`; edit tools/mutants. -->",
        "# Mutation tests: planted mistakes that the tests notice",
        intro,
        "Caught / planted, by room and kind:",
        summary(trials),
        "## Survivors, and why each is harmless",
        "\n".join(shown) or "None.",
        "## Time-outs",
        "A time-out counts as caught: the mistake makes a test hang, and tests have a time limit.",
        "\n".join(ended) or "None.",
    ]
    return "\n\n".join(parts)
