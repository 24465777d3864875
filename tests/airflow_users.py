"""The users of the embedded Airflow."""

from __future__ import annotations

import json

from onceover_local.stack import Stack


def read_password(stack: Stack, user: str) -> str:
    passwords: dict[str, str] = json.loads((stack.local / "airflow" / "passwords.json").read_text())
    return passwords[user]
