"""`privet card`: sign a run, and verify who signed it and that nothing was changed since."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli import console
from privet.cli.exit_codes import FAILED
from privet.cli.groups import command_group
from privet.cli.options import AsJson
from privet.core import VERSION, InvalidInput
from privet.ledger import opened

if TYPE_CHECKING:
    from privet.report import Signed

__all__ = ["about", "card", "key", "sign", "verify"]

_Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
_WAIT = 60.0
"""How long to wait for others who use the ledger, in seconds."""
_KEY = "Where to write the secret half; the public half goes beside it, as FILE.pub."


def about() -> None:
    """Sign the folder of a run, so that others can see who made it, and that nothing was changed since.

    privet card key signer.pem

    privet card sign runs/readmission --key signer.pem

    privet card verify runs/readmission --key signer.pem.pub
    """


@contextmanager
def _key_called(name: str) -> Iterator[None]:
    """Name the library's argument `key` in errors as the command does."""
    try:
        yield
    except InvalidInput as error:
        if error.argument != "key":
            raise
        raise InvalidInput(name, error.problem, error.advice) from None


def _show_key(signature: Signed) -> None:
    console.line(f"key {signature.key}", "dim")
    if signature.head is not None:
        console.line(f"head {signature.head}", "dim")


def key(file: Annotated[Path, typer.Argument(metavar="FILE", help=_KEY)]) -> None:
    """Make a pair of keys (Ed25519): a secret one to sign with, and a public one for those who check.

    privet card key signer.pem
    """
    from privet.report import make_key

    with _key_called("the key"):
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

    The privacy cost is computed again, and the page compared with the card: a run that claims less is not signed.

    privet card sign runs/readmission --key signer.pem
    """
    from privet.report import sign as sign_run

    with _key_called("--key"), console.progress_bar("Comparing the page with the card …") as progress:
        signature = sign_run(run, key, renew=renew, progress=progress)
    with console.after(f"{str(run)!r} was signed"):
        console.line(f"{run} is signed: {', '.join(signature.files)}", "bold green")
        _show_key(signature)


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

    The privacy cost is computed again: whoever signed, the card must not claim less. With --ledger the entries that
    were charged for the run are compared with it too.

    privet card verify runs/readmission --key signer.pem.pub

    privet card verify runs/readmission --ledger privet-ledger.db
    """
    from privet.report import NotGenuine, read_card, require_charged
    from privet.report import verify as verify_run

    if not run.is_dir():
        raise InvalidInput("run", f"is {str(run)!r}, which is no folder", "name the folder of a run")
    answer: dict[str, Any] = {"privet": VERSION, "command": "card verify"}
    try:
        with _key_called("--key"):
            signature = verify_run(run, key)
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
        answer |= {"genuine": True, "key": signature.key, "files": list(signature.files), "head": signature.head}
        console.show_json(answer | {"trusted": signature.trusted} | ({} if ledger is None else {"charged": True}))
        return
    if signature.trusted:
        console.line(f"genuine: nothing was changed since the owner of {key} signed it", "bold green")
    else:
        console.line("unchanged since somebody signed it; who, only --key can tell", "bold yellow")
    _show_key(signature)
    if ledger is not None:
        console.line("charged: the ledger's entries are what the card says was done", "bold green")


card = command_group(about, key, sign, verify)
