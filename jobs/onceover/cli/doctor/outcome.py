"""What a look of `onceover doctor` says of one thing, and how it asks a web server."""

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
    """One thing looked at. `note` is worth knowing and nothing to mend; `wrong` says how to mend it."""

    check: str
    state: Literal["fine", "note", "wrong"]
    what: str


def get_json(url: str) -> Any:
    """What the address answers, within `SECONDS`."""
    asked = Request(url, headers={"Accept": "application/json"})  # Hadoop's settings come as XML otherwise
    with _opener(url).open(asked, timeout=SECONDS) as answer:
        return json.load(answer)


def date_of(url: str) -> float | None:
    """The server's clock as seconds since 1970, by its answer's header; None if it states none. A second is cut off."""
    with _opener(url).open(url, timeout=SECONDS) as answer:
        stated = answer.headers.get("Date")
    return parsedate_to_datetime(stated).timestamp() if stated else None


def _opener(url: str) -> OpenerDirector:
    # A proxy of the environment has no business with loopback.
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    return build_opener(ProxyHandler({})) if local else build_opener()
