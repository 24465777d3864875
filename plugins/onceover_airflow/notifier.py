"""The notifier that a task's final failure goes to, named by one line of configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from onceover.errors import ConfigurationError

VARIABLE = "ONCEOVER_NOTIFIER"
_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


def on_failure(environment: Mapping[str, str] = os.environ) -> list[Callable[[Any], object]]:
    """Load what ONCEOVER_NOTIFIER names as MODULE:NAME: an Airflow notifier, a class of one, or any function that takes
    a task's context. Empty if the variable is not set. Raises ConfigurationError, which Airflow shows as the DAG's
    import error, if it cannot be loaded or called."""
    named = environment.get(VARIABLE, "")
    if not named:
        return []
    if not _NAME.fullmatch(named):
        raise ConfigurationError(f"{VARIABLE}={named[:80]!r} is not MODULE:NAME, like my_alerts:page")
    module, _, name = named.partition(":")
    try:
        loaded = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"{VARIABLE}={named} cannot be loaded: {error}") from error
    notifier = loaded() if isinstance(loaded, type) else loaded
    if not callable(notifier):
        raise ConfigurationError(f"{VARIABLE}={named} is not a notifier: it cannot be called")
    return [notifier]
