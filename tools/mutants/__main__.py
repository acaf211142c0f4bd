"""Plant every declared mutant and report which the tests catch: `python -m tools.mutants --help`."""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.mutants.declarations import ROOT, Mutant, check_all, read_all
from tools.mutants.results import COMMAND, failures, summary, write
from tools.mutants.trial import Outcome, Trial, copy_tree, run_tests, try_mutant

_LAST_LINES = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants. Return 0 if enough are caught and every survivor is proven harmless, else 1."""
    options = _parser().parse_args(arguments)
    declared = read_all()
    mutants = [mutant for mutant in declared if options.only in mutant.name]
    if options.list:
        for mutant in mutants:
            _say(f"{mutant.name}  ({mutant.kind}, {mutant.file}): {mutant.why}")
        return 0
    if problems := check_all(mutants) or ([] if mutants else ["no mutant is declared under that name"]):
        for problem in problems:
            _say(problem)
        return 1
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        trees = [Path(directory) / str(number) for number in range(max(1, min(options.jobs, len(mutants))))]
        copy_tree(ROOT, trees[0])
        for tree in trees[1:]:
            shutil.copytree(trees[0], tree)
        if not _is_green(mutants, trees):
            return 1
        trials = _try_all(mutants, trees, options.timeout)
    _say(summary(trials))
    caught = sum(trial.outcome.is_caught for trial in trials)
    timeouts = sum(trial.outcome is Outcome.TIMEOUT for trial in trials)
    _say(f"{caught} of {len(trials)} caught, {timeouts} of them by time-out")
    if len(mutants) == len(declared):
        write(trials, ROOT)
    problems = failures(trials)
    for problem in problems:
        _say(problem)
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Plant known mistakes and check that a test notices each."
    )
    parser.add_argument(
        "--only", metavar="SUBSTRING", default="", help="only mutants with this in their name; writes no results"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many run at a time (default: cores)")
    parser.add_argument(
        "--timeout", type=float, default=240.0, metavar="S", help="seconds for one mutant (default: 240)"
    )
    parser.add_argument("--list", action="store_true", help="list the declarations and plant nothing")
    return parser


def _is_green(mutants: Sequence[Mutant], trees: Sequence[Path]) -> bool:
    """Check that all named tests pass without any mutant: only then does a failure mean something."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    files = sorted({test.partition("::")[0] for test in tests})
    share = {file: number % len(trees) for number, file in enumerate(files)}
    shares = [[test for test in tests if share[test.partition("::")[0]] == number] for number in range(len(trees))]
    shares = [part for part in shares if part]  # pytest without a name runs every test there is
    _say(f"{len(tests)} tests without a mutant")
    with ThreadPoolExecutor(len(trees)) as pool:
        results = list(pool.map(lambda tree, part: run_tests(part, tree, None, stop=False), trees, shares))
    green = True
    for code, output in results:
        if code != 0:
            green = False
            _say(_end(output))
            _say("these tests must pass before a mutant is planted")
    return green


def _try_all(mutants: Sequence[Mutant], trees: Sequence[Path], limit: float) -> list[Trial]:
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)

    def try_one(mutant: Mutant) -> Trial:
        tree = free.get()
        try:
            trial = try_mutant(mutant, tree, limit)
        finally:
            free.put(tree)
        unexpected = trial.outcome is Outcome.BROKEN or (trial.outcome is Outcome.SURVIVED and not mutant.harmless)
        _say(
            f"{trial.outcome.value:8} {trial.seconds:6.1f} s  {mutant.name}"
            + (f"\n{_end(trial.output)}" if unexpected else "")
        )
        return trial

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(try_one, mutants))


def _end(output: str) -> str:
    return "\n".join(output.splitlines()[-_LAST_LINES:])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
