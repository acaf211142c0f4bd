"""`privet card`: who vouches for a run, and whether it is still what they vouched for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from privet.cli import console
from privet.cli.groups import command_group
from privet.cli.options import AsJson
from privet.cli.run import FAILED
from privet.core.codec import VERSION
from privet.core.errors import InvalidInput
from privet.ledger.opening import opened

__all__ = ["about", "card", "key", "sign", "verify"]

_Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
_WAIT = 60.0
"""How long to wait for others who use the ledger, in seconds."""
_MADE = "Where the secret half is kept; the public half goes beside it, as FILE.pub."


def about() -> None:
    """Sign the folder of a run, so that others can see who made it, and that nothing was changed since.

    privet card key signer.pem

    privet card sign runs/readmission --key signer.pem

    privet card verify runs/readmission --key signer.pem.pub
    """


@contextmanager
def _as(name: str) -> Iterator[None]:
    """Call the library's `key` as it is called here."""
    try:
        yield
    except InvalidInput as error:
        if error.argument != "key":
            raise
        raise InvalidInput(name, error.problem, error.advice) from None


def key(file: Annotated[Path, typer.Argument(metavar="FILE", help=_MADE)]) -> None:
    """Make a pair of keys (Ed25519): a secret one to sign with, and a public one for those who check.

    privet card key signer.pem
    """
    from privet.report import make_key

    with _as("the key"):
        public = make_key(file)
    with console.after(f"the key {str(file)!r} was made"):
        console.line(f"{file} is secret: keep it to yourself. {file}.pub is for everybody.", "bold green")
        console.line(f"key {public}", "dim")


def sign(
    run: _Run,
    key: Annotated[Path, typer.Option(metavar="FILE", help="The secret key, from: privet card key")],
    renew: Annotated[
        bool, typer.Option("--renew", help="Write report.html anew first, as this version of Privet makes it.")
    ] = False,
) -> None:
    """Sign every file of a run that may be shared, and the head of the ledger's chain. Internal files are left out.

    The card is priced again, and the page compared with it: a run that claims less than it cost is not signed.

    privet card sign runs/readmission --key signer.pem
    """
    from privet.report import sign as signed

    with _as("--key"), console.progress_bar("Comparing the page with the card …") as progress:
        found = signed(run, key, renew=renew, progress=progress)
    with console.after(f"{str(run)!r} was signed"):
        console.line(f"{run} is signed: {', '.join(found.files)}", "bold green")
        console.line(f"key {found.key}", "dim")
        if found.head is not None:
            console.line(f"head {found.head}", "dim")


def verify(
    run: _Run,
    key: Annotated[
        Path | None, typer.Option(metavar="PUB", help="The signer's public key, from the signer and not from the run.")
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="The ledger, to compare what was charged there."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that a run is what was signed, and with --key also who signed. Exit code 1 if it is not.

    The card is priced again: whoever signed, it must not claim less than it cost. With --ledger the entries that paid
    for the run are compared with it too.

    privet card verify runs/readmission --key signer.pem.pub

    privet card verify runs/readmission --ledger privet-ledger.db
    """
    from privet.report import NotGenuine, read_card, require_charged
    from privet.report import verify as verified

    if not run.is_dir():
        raise InvalidInput("run", f"is {str(run)!r}, which is no folder", "name the folder of a run")
    answer: dict[str, Any] = {"privet": VERSION, "command": "card verify"}
    try:
        with _as("--key"):
            found = verified(run, key)
        if ledger is not None:
            with opened(ledger, None, _WAIT) as book:
                require_charged(read_card(run), book)
    except NotGenuine as problem:
        if as_json:
            console.show_json(answer | {"genuine": False, "problem": str(problem)})
        else:
            console.line(f"not genuine: {problem}", "bold red")
        raise typer.Exit(FAILED) from None
    if as_json:
        said = {"key": found.key, "files": list(found.files), "head": found.head, "trusted": found.trusted}
        console.show_json(answer | {"genuine": True} | said | ({} if ledger is None else {"charged": True}))
        return
    if found.trusted:
        console.line(f"genuine: nothing was changed since the owner of {key} signed it", "bold green")
    else:
        console.line("unchanged since somebody signed it; who, only --key can tell", "bold yellow")
    console.line(f"key {found.key}", "dim")
    if found.head is not None:
        console.line(f"head {found.head}", "dim")
    if ledger is not None:
        console.line("charged: the ledger's entries are what the card says was done", "bold green")


card = command_group(about, key, sign, verify)
