"""`privet` as a program of its own: pipes, signals, and what its package must carry."""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import privet
from privet.ledger import Ledger

PROGRAM = [sys.executable, "-c", "import sys; from privet.cli import main; sys.exit(main())"]
GOOD = ["account", "--noise-multiplier", "1.1", "--sample-rate", "0.01", "--steps", "100", "--delta", "1e-5"]
ROOT = Path(__file__).parents[2]
# Also where the package is not installed, and the tests are pointed at its source.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(privet.__file__).parents[1])}


def test_json_goes_to_stdout_and_nothing_else_does(tmp_path: Path) -> None:
    """Fails when importing or computing prints anything, on either stream, or a progress bar reaches a pipe."""
    command = [*PROGRAM, *GOOD, "--json", "--plot", "page.html"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["guarantee"]["epsilon"]["upper"] < 1
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_python_m_privet_is_the_same_program(tmp_path: Path) -> None:
    """Fails when the package cannot be run as a module, or its exit code, its name or its answer differ there."""

    def ran(program: list[str], words: list[str]) -> tuple[int, str, str]:
        command = [*program, *words]
        done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, encoding="utf-8")
        return done.returncode, done.stdout, done.stderr

    module = [sys.executable, "-m", "privet"]
    for words in (["--version"], ["account", "--delta", "2"], ["ledger", "--help"]):
        assert ran(module, words) == ran(PROGRAM, words)
    assert ran(module, ["account"])[0] == 2


def test_bad_input_leaves_one_line_and_exit_code_2(tmp_path: Path) -> None:
    """Fails when the exit code does not reach the shell."""
    command = [*PROGRAM, "account", "--delta", "2"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("privet: ")
    assert done.stderr.count("\n") == 1


def test_a_mistake_of_our_own_is_one_line(tmp_path: Path) -> None:
    """Fails when what nobody expected shows users a traceback or its text, which may quote a row, looks like bad input,
    or cannot be looked into."""
    broken = (
        "import sys; from privet.cli import main; import privet.cli.account as account\n"
        "def broken(*_): raise ValueError('two\\nlines')\n"
        "account.unit_of = broken; sys.exit(main())"
    )
    command = [sys.executable, "-c", broken, *GOOD]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr.startswith("privet: internal error: ValueError; please report it")
    assert "lines" not in done.stderr
    assert done.stderr.count("\n") == 1
    wanted = ENVIRONMENT | {"PRIVET_TRACEBACK": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=wanted, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "two\nlines" in done.stderr


@pytest.mark.parametrize("words", [GOOD, [*GOOD, "--json"], ["ledger", "verify"], ["ledger", "--help"], ["--version"]])
def test_a_reader_that_goes_away_is_not_a_failed_check(tmp_path: Path, words: list[str]) -> None:
    """Fails when `privet ledger verify | true` ends with 1, which means damage, or when anything is said about it."""
    with Ledger(tmp_path / "privet-ledger.db") as ledger:
        ledger.create("clinic", epsilon=1.0, delta=1e-6)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [*PROGRAM, *words]
        done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_nobody_reads_the_errors(tmp_path: Path) -> None:
    """Fails when a refusal that cannot be said becomes an internal error."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*PROGRAM, "nosuch"], cwd=tmp_path, env=ENVIRONMENT, stdout=writing, stderr=writing)
    finally:
        os.close(writing)
    assert done.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("ledger create clinic --epsilon 1 --delta 1e-6", "privet: the budget for 'clinic' was made, but the output"),
        (
            "account --noise-multiplier 4 --sampling none --steps 1 --delta 1e-5 --plot a.html",
            "'a.html' was written, but",
        ),
        ("--version", "privet: the output cannot be written: no space left on device; make room for it"),
    ],
)
def test_what_was_done_is_said_where_the_output_is_full(tmp_path: Path, words: str, said: str) -> None:
    """Fails when a full disk behind stdout hides that a budget, which cannot be made twice, was made."""
    command = [*PROGRAM, *words.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, cwd=tmp_path, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, encoding="utf-8"
        )
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "privet-ledger.db").exists() is ("ledger" in words)


def test_an_interrupted_program_leaves_nothing_behind(tmp_path: Path) -> None:
    """Fails when Ctrl-C in the middle of the work prints a traceback, leaves half a page, or looks like success."""
    long = ["account", "--noise-multiplier", "1.1", "--sample-rate", "0.001", "--steps", "1000000", "--delta", "1e-5"]
    ready = "import sys; from privet.cli import main; print('ready', file=sys.stderr, flush=True); sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", ready, *long, "--records", "5", "--plot", "page.html"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said.strip()) == (130, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_every_package_that_is_imported_is_declared() -> None:
    """Fails when the source imports what only comes along with something else today, and may not tomorrow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(text for name, each in extras.items() if name != "test" for text in each)]
    declared = {re.split(r"[^\w-]", text)[0].replace("-", "_") for text in wanted}
    imported = set()
    for path in Path(privet.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                imported.add(node.module.split(".")[0])
    assert "click" in imported
    known_as = {"sklearn": "scikit_learn"}
    imported = {known_as.get(name, name) for name in imported}
    assert imported - set(sys.stdlib_module_names) - {"privet"} - declared == set()


def test_the_package_carries_every_file_that_it_reads() -> None:
    """Fails when a style sheet or a script lies in the source tree and would be missing from an installed wheel."""
    source = Path(privet.__file__).parent
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    patterns = [
        "/".join([*package.split(".")[1:], pattern]) for package, several in listed.items() for pattern in several
    ]
    assets = [path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()]
    compiled = (".c", ".h", ".so")  # read when the package is built, and what comes of it
    assets = [name for name in assets if not name.endswith((".py", ".pyc", *compiled))]
    assert "report/page.css" in assets
    assert [name for name in assets if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []


def test_every_function_fits_a_screen_or_two() -> None:
    """Fails when a function of the command line grows beyond 80 lines, its options and its help included."""
    long = {
        f"{path.name}: {node.name}"
        for path in (Path(privet.__file__).parent / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 80
    }
    assert long == set()
