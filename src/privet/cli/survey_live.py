"""Serving a survey: the page that asks, and the projector's page with a QR code and estimates that sharpen."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from privet.cli import console
from privet.core.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from privet.local.endpoint import Endpoint, Page
    from privet.local.reports import Collection

_NOT_FROM_OUTSIDE = ("127.0.0.1", "0.0.0.0")  # noqa: S104 (nothing is bound here)
__all__ = ["live_endpoint", "live_page", "qr_code", "serve_live", "serve_reports"]


def serve_reports(collection: Collection, out: Path, host: str, port: int, brought: str) -> None:
    """Say what there is already, and take reports until it is interrupted."""
    from privet.local.endpoint import Endpoint

    with Endpoint(collection, _asking(collection), out, host, port) as endpoint:
        console.line(brought)
        _until_stopped(endpoint, f"Answers are taken at {endpoint.address}; stop with Ctrl+C.")


def serve_live(collection: Collection, out: Path, host: str, port: int, address: str | None, confidence: float) -> None:
    """Take reports and show them until it is interrupted."""
    with live_endpoint(collection, out, host, port, address, confidence) as endpoint:
        if address is None and endpoint.server_address[0] in _NOT_FROM_OUTSIDE:
            said = f"No phone can open {endpoint.address}, which is what the QR code says"
            console.line(f"{said}; use --host 0.0.0.0 and --address with this machine's address.", "yellow")
        _until_stopped(endpoint, f"Open {endpoint.address}live on the projector; stop with Ctrl+C.")


def live_endpoint(
    collection: Collection, out: Path, host: str, port: int, address: str | None, confidence: float
) -> Endpoint:
    """The endpoint with all its pages, not yet serving."""
    from privet.cli.survey_view import document
    from privet.local.endpoint import Endpoint

    # What may be refused is refused before anything listens.
    qr_code(_checked(address) if address is not None else host)
    pages = _asking(collection)
    endpoint = Endpoint(collection, pages, out, host, port)
    projected = live_page(collection.questionnaire.title, address or endpoint.address, confidence)
    pages["/live"] = lambda: ("text/html", projected)
    pages["/estimate.json"] = lambda: ("application/json", json.dumps(document(collection, confidence)))
    return endpoint


def live_page(title: str, address: str, confidence: float) -> str:
    """The projector's page: it asks where it came from for the estimates, and nowhere else."""
    script, style = (
        files("privet.local").joinpath(name).read_text(encoding="utf-8") for name in ("live.js", "live.css")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'"
    )
    sure = f"Bands, and the numbers beside them, are {100 * confidence:g} % intervals for the noise of randomising."
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{html.escape(title)}</title>
<style>{style}</style></head>
<body><main><header><div><h1>{html.escape(title)}</h1><p id="count" role="status">No answers yet.</p>
<p class="sure">{sure}</p></div>
<div class="join">{qr_code(address)}<p>{html.escape(address)}</p></div></header><div id="questions"></div></main>
<script>{script}</script></body></html>
"""


def qr_code(text: str) -> str:
    """The text as a QR code, in SVG."""
    try:
        import segno
    except ImportError:
        raise MissingExtra("segno", "survey") from None
    return str(segno.make(text, error="m", micro=False).svg_inline(border=2, light="#fff", omitsize=True))


def _checked(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or len(address) > 500:
        raise InvalidInput("address", f"is {address!r}", "give a URL such as http://192.168.1.5:8000/")
    return address


def _asking(collection: Collection) -> dict[str, Page]:
    from privet.local.page import questionnaire_page

    page = questionnaire_page(collection.questionnaire, send=True)
    return {"/": lambda: ("text/html", page)}


def _until_stopped(endpoint: Endpoint, words: str) -> None:
    console.line(words, "bold")
    endpoint.serve_forever()
