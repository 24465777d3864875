"""The outcome of one check of `onceover doctor`, and the checks' requests to web servers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a check. A `note` needs no action; `wrong` says how to fix the problem."""

    check: str
    state: Literal["fine", "note", "wrong"]
    what: str


def get_json(url: str, **headers: str) -> Any:
    """Return the address's JSON answer. Raises OSError, or ValueError, without one within `SECONDS`."""
    accept = {"Accept": "application/json"}  # otherwise Hadoop sends its settings as XML
    request = Request(url, headers=accept | headers)
    with _make_opener(url).open(request, timeout=SECONDS) as answer:
        return json.load(answer)


def read_date(url: str, **headers: str) -> float | None:
    """Return the server's clock in whole seconds since 1970, from the answer's Date header; None without one."""
    with _make_opener(url).open(Request(url, headers=headers), timeout=SECONDS) as answer:
        stated = answer.headers.get("Date")
    return parsedate_to_datetime(stated).timestamp() if stated else None


def _make_opener(url: str) -> OpenerDirector:
    # The environment's proxy is not for loopback.
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    return build_opener(ProxyHandler({})) if local else build_opener()
