"""Signatures: who vouches for a run's folder, and that not a byte of it was changed since.

`signature.json` holds the hash of every shareable file of the folder, the ledger's chain head from the card, and an
Ed25519 signature (RFC 8032) over all of that. Internal files, and those whose names begin with a dot, are not shared
and not signed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.core import InvalidInput, PrivetError, Release, reason_of, write_atomically
from privet.data import BoundsSource, Category, Number, Schema, SourceKind, refusal_of
from privet.report.curves import curves_of
from privet.report.price_check import require_priced
from privet.report.runs import CARD, REPORT, load, read_card
from privet.report.training_card import TrainingCard
from privet.report.training_page import report_page, states
from privet.report.training_records import PATE
from privet.report.write import write_page

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["SIGNATURE", "NotGenuine", "Signed", "make_key", "sign", "verify"]

SIGNATURE = "signature.json"
_FORMAT = 1
_DOMAIN = b"privet card signature 1\n"
_DESCRIPTION, _WEIGHTS = "model.json", "model.safetensors"
"""As `privet.training.models.storage` names them; a reader of cards does not need PyTorch."""
_FROM_PUBLIC_ROWS = "The schema was read from the public rows."
"""The condition on a card of PATE whose schema nobody wrote."""
_RETRAIN = "train again with a schema that somebody vouches for (privet schema confirm)"
_Path = str | os.PathLike[str]


class NotGenuine(PrivetError):
    """A folder is not what was signed."""


@dataclass(frozen=True)
class Signed:
    """What a valid signature says."""

    key: str
    """The signer's public key, in hexadecimal."""
    files: tuple[str, ...]
    head: str | None
    """The ledger's chain head, if the run was charged to one."""
    trusted: bool
    """Whether the key was compared with one that the reader has from elsewhere; else anyone may have signed."""


def make_key(path: _Path) -> str:
    """Create a key pair.

    Args:
        path: The file of the secret key, which only its owner can read (mode 600); the public key goes to `path` +
            ".pub".

    Returns:
        The public key in hexadecimal.

    Raises:
        InvalidInput: A file exists already, or cannot be written.
    """
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for place, text, mode in ((Path(path), secret, 0o600), (Path(f"{os.fspath(path)}.pub"), public, 0o644)):
        try:
            with os.fdopen(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
                file.write(text)
        except OSError as error:
            problem = f"cannot be written to {str(place)!r}: {reason_of(error)}"
            raise InvalidInput("key", problem, "name another file") from None
    return _hex(key.public_key())


def sign(
    folder: _Path,
    key: _Path,
    *,
    renew: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Signed:
    """Sign every shareable file of a run's folder.

    A folder that contradicts itself is not signed: the card is priced again, somebody must vouch for its schema, that
    schema must be the model's, and the page is drawn again from the card and compared.

    Args:
        folder: The folder.
        key: The PEM file of the secret key.
        renew: Whether to write the page again first; a page that another version made differs.
        progress: Called with the number of finished steps and their total.

    Returns:
        What the signature says.

    Raises:
        InvalidInput: The folder contradicts itself, or the key cannot be used.
        NotGenuine: A file of the folder is a link.
    """
    folder, secret = Path(folder), _secret(Path(key))
    card = load(folder)
    _require_sources(card)
    _require_same_schema(folder, card)
    _require_page(folder, card, renew, progress)
    head = None if card.ledger is None else card.ledger.value.head
    public = _hex(secret.public_key())
    hashes = _hashes(folder)
    said: dict[str, Any] = {"privet-signature": _FORMAT, "key": public, "head": head, "files": hashes}
    write_atomically(folder / SIGNATURE, _text(said | {"signature": secret.sign(_message(said)).hex()}), "folder")
    return Signed(public, tuple(hashes), head, trusted=True)


def verify(folder: _Path, key: _Path | None = None) -> Signed:
    """Check a run's folder against its signature.

    Whoever signed, the card must not claim less than its events cost, rest on bounds for which nobody vouches or hide
    that it rests on them, nor may its page promise something else than the card.

    Args:
        folder: The folder.
        key: The PEM file of the signer's public key. Without it, the signature only says that nothing was changed since
            somebody signed: whoever changes a file can sign again with a key of their own.

    Returns:
        What the signature says.

    Raises:
        NotGenuine: The first thing that is wrong.
        InvalidInput: The key cannot be used.
    """
    folder = Path(folder)
    said = _read(folder)
    trusted = key is not None
    if key is not None and _hex(_public(Path(key))) != said["key"]:
        raise NotGenuine(f"{SIGNATURE} was made with another key than {str(key)!r}; ask the signer for theirs")
    _check(said)
    found = _hashes(folder)
    for name, digest in said["files"].items():
        if name not in found:
            raise NotGenuine(f"{name} was signed and is missing from {str(folder)!r}")
        if found[name] != digest:
            raise NotGenuine(f"{name} was changed after it was signed")
    if extra := sorted(set(found) - set(said["files"])):
        raise NotGenuine(f"{extra[0]} is not covered by the signature; remove it, or sign again")
    card = read_card(folder)
    try:
        require_priced(card)
        _require_sources(card)
        _require_same_schema(folder, card)
    except InvalidInput as error:
        raise NotGenuine(f"{CARD} {error.problem}, whoever signed it") from None
    if REPORT in found and not states((folder / REPORT).read_text(encoding="utf-8", errors="replace"), card):
        raise NotGenuine(f"{REPORT} promises something else than {CARD}, whoever signed it")
    if said["head"] != (None if card.ledger is None else card.ledger.value.head):
        raise NotGenuine(f"{SIGNATURE} has another chain head than {CARD}")
    return Signed(said["key"], tuple(said["files"]), said["head"], trusted)


def _require_sources(card: TrainingCard) -> None:
    """Raise where nobody vouches for bounds or values that the card takes for public, or its guarantee hides them."""
    if card.schema is None:
        return
    schema = Schema.from_toml(card.schema.value)
    if isinstance(card.schema, Release):
        kinds = [source.kind for _, source in schema.sources() if source is not None]
        if any(kind is not SourceKind.LEARNED for kind in kinds):
            raise InvalidInput("card", "has a learned schema with another source than the budget", _RETRAIN)
        return
    unknown = [repr(name) for name, source in schema.sources() if source is None]
    if unknown:
        problem = f"has a schema without a source for the bounds or values of {', '.join(unknown)}"
        raise InvalidInput("card", problem, "add one (privet schema confirm), and train again with that schema")
    for column in schema.columns:
        if not isinstance(column, (Number, Category)) or _is_from_public_rows(card, schema, column):
            continue
        reason = refusal_of(column)
        if reason is not None:
            raise InvalidInput("card", f"has a schema whose column {column.name!r} {reason}", _RETRAIN)
    if not set(schema.assumptions) <= set(card.privacy.guarantee.value.assumptions):
        problem = "has a guarantee that does not state what it assumes about its schema"
        raise InvalidInput("card", problem, "get the card again from whoever made the run")


def _is_from_public_rows(card: TrainingCard, schema: Schema, column: Number | Category) -> bool:
    """Whether PATE read a column from its public rows, so that nobody needs to vouch: the classes may be given."""
    source = BoundsSource.of(column.source)
    drafted = card.method.value == PATE and _FROM_PUBLIC_ROWS in card.privacy.conditions.value
    if not drafted or source is None or source.by is not None:
        return False
    is_stated_target = column.name == schema.target and source.kind is SourceKind.DOMAIN_LIMIT
    return source.kind is SourceKind.PUBLIC_DATA or is_stated_target


def _require_same_schema(folder: Path, card: TrainingCard) -> None:
    """Raise where the model of the folder reads its rows by another schema than the card's."""
    path = folder / _DESCRIPTION
    if not path.exists() and not (folder / _WEIGHTS).exists():
        return
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        text, shape = described["schema"], described["shape"]
        model = None if text is None else Schema.from_toml(text).without_sources()
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidInput("card", f"stands beside a {_DESCRIPTION} that cannot be read", "get it again") from None
    own = None if card.schema is None else Schema.from_toml(card.schema.value).without_sources()
    if model != own or (model is None and shape is None):
        problem = f"has another schema than {_DESCRIPTION}, by which the model reads its rows"
        raise InvalidInput("card", problem, "get both again from whoever made the run")


def _require_page(folder: Path, card: TrainingCard, renew: bool, progress: Callable[[int, int], None]) -> None:
    """Raise unless the page, if there is one, is what this version makes of the card."""
    path = folder / REPORT
    if not path.exists() and not renew:
        return
    page = report_page(card, curves_of(card.privacy, progress=progress, whole=False))
    if renew:
        write_page(path, page, "run")
    elif path.read_bytes() != page.encode():
        problem = f"is {str(folder)!r}, whose {REPORT} is not what this version makes of its {CARD}"
        raise InvalidInput("run", problem, "was either changed? if not, renew the page: --renew")


def _read(folder: Path) -> dict[str, Any]:
    path = folder / SIGNATURE
    try:
        text = path.read_bytes()
    except OSError:
        raise NotGenuine(f"{str(folder)!r} has no {SIGNATURE}; sign it first: privet card sign") from None
    wrong = NotGenuine(f"{SIGNATURE} is not as it was written; ask for the folder again")
    try:
        said = json.loads(text)
        kinds: dict[str, Any] = {"privet-signature": int, "head": (str, type(None)), "files": dict}
        kinds |= {"key": str, "signature": str}
        fits = set(said) == set(kinds) and all(isinstance(said[name], kind) for name, kind in kinds.items())
        # One spelling, so that not even a space can be changed unseen.
        fits = fits and _text(said).encode() == text and said["privet-signature"] == _FORMAT
        fits = fits and all(bytes.fromhex(said[name]).hex() == said[name] for name in ("key", "signature"))
    except (ValueError, TypeError, RecursionError):
        raise wrong from None
    if not fits:
        raise wrong
    return dict(said)


def _check(said: dict[str, Any]) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    unsigned = {name: value for name, value in said.items() if name != "signature"}
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["key"]))
        public.verify(bytes.fromhex(said["signature"]), _message(unsigned))
    except (InvalidSignature, ValueError):
        raise NotGenuine(f"{SIGNATURE} does not hold: its signature is not over what it says") from None


def _hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of every shareable file, by its path within the folder."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith((".", "internal")) for part in parts) or parts == (SIGNATURE,):
            continue
        if path.is_symlink():
            raise NotGenuine(
                f"{'/'.join(parts)} is a link, and what it points to may change; put the file itself there"
            )
        if path.is_file():
            hashes["/".join(parts)] = _digest(path)
    return hashes


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput("folder", f"has {path.name!r}, which cannot be read: {reason_of(error)}") from None


def _message(said: Mapping[str, Any]) -> bytes:
    return _DOMAIN + _text(said).encode()


def _text(said: Mapping[str, Any]) -> str:
    return json.dumps(said, sort_keys=True, indent=1, ensure_ascii=True) + "\n"


def _hex(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _pem(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"is {str(path)!r}, which cannot be read: {reason_of(error)}"
        raise InvalidInput("key", problem, "make one with: privet card key FILE") from None


def _secret(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = _pem(path)
    if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        problem = f"is {str(path)!r}, which others than its owner can read"
        raise InvalidInput("key", problem, f"run: chmod 600 {path.name}, or make a new one")
    try:
        key = load_pem_private_key(text, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput("key", f"is {str(path)!r}, which is no Ed25519 secret key in PEM", "see: privet card key")
    return key


def _public(path: Path) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_pem(path))
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInput("key", f"is {str(path)!r}, which is no Ed25519 public key in PEM", "give the .pub file")
    return key
