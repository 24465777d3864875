"""The users of the embedded Airflow."""

from __future__ import annotations

import json

import requests

from onceover.config.endpoints import address
from onceover_local.stack import Stack


def read_password(stack: Stack, user: str) -> str:
    passwords: dict[str, str] = json.loads((stack.local / "airflow" / "passwords.json").read_text())
    return passwords[user]


def log_in(stack: Stack, user: str) -> str:
    """Return a token of that user's, for requests that `AirflowRest` does not send."""
    login = {"username": user, "password": read_password(stack, user)}
    answer = requests.post(f"{address('airflow')}/auth/token", json=login, timeout=60)
    return str(answer.json()["access_token"])
