"""WebHDFS of several NameNodes: each request goes to the active one, and waits for it while they fail over."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import SplitResult, urlsplit

import requests

NOT_SERVING = ("StandbyException", "RetriableException")
FAILOVER_SECONDS = 15.0
"""How long a request waits for an active NameNode: less than doctor waits for a check."""
_PAUSE = 0.5


class NameNodeSession(requests.Session):
    """A session for requests to the first of these NameNodes, separated by `;`, which go to the active one; a single
    NameNode, and a DataNode, gets each request once. Make it in the process that uses it: it does not survive a
    fork."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._namenodes = [each.rstrip("/") for each in address.split(";")]
        self._active = self._namenodes[0]

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
        """Return the active NameNode's answer, or the last one if none was active for so long."""
        first = self._namenodes[0]
        if len(self._namenodes) == 1 or not url.startswith(f"{first}/"):
            return super().request(method, url, **options)
        failure: requests.RequestException
        end, place = time.monotonic() + FAILOVER_SECONDS, url.removeprefix(first)
        while True:
            refused: requests.Response | None = None
            for namenode in sorted(self._namenodes, key=self._active.__ne__):
                try:
                    answer = super().request(method, f"{namenode}{place}", **options)
                except (requests.ConnectionError, requests.Timeout) as error:
                    if split_asked(error).netloc != urlsplit(namenode).netloc:
                        raise  # a DataNode's, to which the active NameNode had sent the request on
                    failure = error
                    continue
                if is_serving(answer):
                    self._active = namenode
                    return answer
                refused = answer
            if time.monotonic() >= end:
                if refused is None:
                    raise failure
                return refused
            time.sleep(_PAUSE)


def is_serving(answer: requests.Response) -> bool:
    """Return whether a NameNode has answered that is neither a standby nor about to start."""
    return answer.status_code != requests.codes.forbidden or not any(f'"{name}"' in answer.text for name in NOT_SERVING)


def split_asked(error: BaseException | None) -> SplitResult:
    """Return the address that a request had gone to when it failed, after a redirect; empty if unknown."""
    request = error.request if isinstance(error, requests.RequestException) else None
    return urlsplit("" if request is None else str(request.url))
