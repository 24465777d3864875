"""Secrets come from the environment, or from a file that it names and nobody but its owner can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from onceover.errors import ConfigurationError


def secret(variable: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The variable's value, or what the file holds that `VARIABLE_FILE` names; None where neither is set.

    Raises ConfigurationError for both at once, and for a file that others may read or that cannot be read.
    """
    value, named = environment.get(variable), environment.get(f"{variable}_FILE")
    if not named:
        return value or None
    if value:
        raise ConfigurationError(f"{variable} and {variable}_FILE are both set; take one away")
    file = Path(named)
    try:
        if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigurationError(f"{variable}_FILE: {file} may be read by others than its owner; `chmod 600` it")
        found = file.read_text().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(f"{variable}_FILE: {file} cannot be read: {reason}") from None
    if not found:
        raise ConfigurationError(f"{variable}_FILE: {file} holds nothing")
    return found
