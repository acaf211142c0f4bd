"""Serve a survey: the page that asks, and the projector's page with a QR code and estimates that sharpen."""

from __future__ import annotations

import html
import json
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

from privet.core import InvalidInput, MissingExtra
from privet.local.endpoint import Endpoint, Page
from privet.local.estimates import estimates_document
from privet.local.page import asset, content_policy, questionnaire_page
from privet.local.reports import Collection

__all__ = ["live_endpoint", "live_page", "qr_code", "survey_endpoint"]


def survey_endpoint(collection: Collection, out: Path, host: str = "127.0.0.1", port: int = 0) -> Endpoint:
    """Return an endpoint that hands out the questionnaire's page and takes reports; `serve_forever` starts it.

    Args:
        collection: What was reported before; reports are counted in it.
        out: The file that reports are appended to.
        host: The address to listen on.
        port: The port; 0 takes any that is free.

    Raises:
        InvalidInput: The address cannot be listened on.
    """
    return Endpoint(collection, _questionnaire_pages(collection), out, host, port)


def live_endpoint(
    collection: Collection, out: Path, host: str, port: int, address: str | None, confidence: float
) -> Endpoint:
    """Return an endpoint as `survey_endpoint` does, with a page of live estimates at /live.

    Args:
        collection: What was reported before; reports are counted in it.
        out: The file that reports are appended to.
        host: The address to listen on.
        port: The port; 0 takes any that is free.
        address: The URL in the QR code; that of the endpoint, if None.
        confidence: The confidence of the intervals.

    Raises:
        InvalidInput: The address is not a URL, or cannot be listened on.
        MissingExtra: segno, which draws QR codes, is not installed.
    """
    # What may be refused is refused before anything listens.
    qr_code(_checked(address) if address is not None else host)
    pages = _questionnaire_pages(collection)
    endpoint = Endpoint(collection, pages, out, host, port)
    projected = live_page(collection.questionnaire.title, address or endpoint.address, confidence)
    pages["/live"] = lambda: ("text/html", projected)
    pages["/estimate.json"] = lambda: ("application/json", json.dumps(estimates_document(collection, confidence)))
    return endpoint


def live_page(title: str, address: str, confidence: float) -> str:
    """Return the projector's page, which fetches estimates from where it came from, and nothing from elsewhere.

    Args:
        title: The title of the survey.
        address: The URL in the QR code.
        confidence: The confidence of the intervals.
    """
    script = asset("live.js")
    return Template(asset("live.html")).substitute(
        policy=content_policy(script, connects=True),
        title=html.escape(title),
        style=asset("live.css"),
        confidence=f"{100 * confidence:g}",
        code=qr_code(address),
        address=html.escape(address),
        script=script,
    )


def qr_code(text: str) -> str:
    """Return a text as a QR code, in SVG.

    Raises:
        MissingExtra: segno is not installed.
    """
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


def _questionnaire_pages(collection: Collection) -> dict[str, Page]:
    page = questionnaire_page(collection.questionnaire, send=True)
    return {"/": lambda: ("text/html", page)}
