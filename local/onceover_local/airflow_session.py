"""The requests of Airflow's REST client: one user's login, the token, and answers of a bounded size."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import requests

from onceover.errors import TerminalError, TransientError, UnreachableError

_TIMEOUT: Final = (5, 60)
_MAX_BYTES: Final = 64 << 20


class AirflowSession:
    """One user's session with the Airflow at `address`, which alone gets the password and the token."""

    def __init__(self, address: str, user: str, password: str) -> None:
        self.address = address.rstrip("/")
        self._login = {"username": user, "password": password}
        self._http = requests.Session()
        self._http.trust_env = False  # a proxy of the environment must not see a local password
        self._http.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True  # which `trust_env` would have read

    def close(self) -> None:
        self._http.close()

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        allowed: Sequence[int] = (),
    ) -> requests.Response:
        open_to_all = path.endswith("/monitor/health")
        if "Authorization" not in self._http.headers and not open_to_all:
            self._log_in()
        answer = self._raw(method, path, body, query)
        if answer.status_code == 401 and not open_to_all:  # the token has expired
            self._log_in()
            answer = self._raw(method, path, body, query)
        if answer.status_code < 300 or answer.status_code in allowed:
            return answer
        message = f"Airflow refused {method} {path[:300]} ({answer.status_code}): {_read_detail(answer)}"
        raise TransientError(message) if answer.status_code in (429, 502, 503, 504) else TerminalError(message)

    def _log_in(self) -> None:
        self._http.headers.pop("Authorization", None)
        answer = self._raw("POST", "/auth/token", self._login)
        if answer.status_code >= 300:
            raise TerminalError(
                f"Airflow at {self.address} refuses the login of {self._login['username']!r} ({answer.status_code}); "
                "check the password"
            )
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def _raw(
        self, method: str, path: str, body: Mapping[str, Any] | None, query: Mapping[str, Any] | None = None
    ) -> requests.Response:
        try:
            answer = self._http.request(
                method,
                self.address + path,
                json=body,
                params=query,
                timeout=_TIMEOUT,
                allow_redirects=False,  # the password and the token are for this address
                stream=True,
            )
            with answer:
                answer._content = self._read(answer)
        except requests.RequestException as error:
            raise UnreachableError(
                f"Airflow at {self.address} does not answer ({type(error).__name__}); see `onceover stack status`"
            ) from error
        return answer

    def _read(self, answer: requests.Response) -> bytes:
        content = bytearray()
        for chunk in answer.iter_content(1 << 16):
            content += chunk
            if len(content) > _MAX_BYTES:
                raise TerminalError(
                    f"Airflow at {self.address} sent over {_MAX_BYTES >> 20} MiB in one answer; check the address"
                )
        return bytes(content)


def _read_detail(answer: requests.Response) -> str:
    try:
        detail = answer.json().get("detail")
    except (ValueError, AttributeError, RecursionError):
        detail = answer.text
    text = detail if isinstance(detail, str) else json.dumps(detail)
    return (text.strip().splitlines() or ["no reason given"])[0][:500]  # a refused form repeats its schema below
