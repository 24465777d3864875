"""Who is told when a task has failed for good: one line of configuration names it."""

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
    """What ONCEOVER_NOTIFIER names as MODULE:NAME: an Airflow notifier, a class of one, or any function that takes a
    task's context; nothing where it is not set. Raises ConfigurationError, a DAG's import error, if it is not there."""
    named = environment.get(VARIABLE, "")
    if not named:
        return []
    if not _NAME.fullmatch(named):
        raise ConfigurationError(f"{VARIABLE}={named[:80]!r} is not MODULE:NAME, like my_alerts:page")
    module, _, name = named.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"{VARIABLE}={named}: {error}") from error
    made = found() if isinstance(found, type) else found
    if not callable(made):
        raise ConfigurationError(f"{VARIABLE}={named} is no notifier: it cannot be called")
    return [made]
