"""The notifier that a task's final failure goes to, named by one line of configuration, with its options by another."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from onceover.errors import ConfigurationError

VARIABLE = "ONCEOVER_NOTIFIER"
OPTIONS = "ONCEOVER_NOTIFIER_OPTIONS"
_EXAMPLE = '{"to": "on-call@example.com"}'
_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


def on_failure(environment: Mapping[str, str] = os.environ) -> list[Callable[[Any], object]]:
    """Load what ONCEOVER_NOTIFIER names as MODULE:NAME: an Airflow notifier, a class of one, or any function that takes
    a task's context. A class gets the arguments of ONCEOVER_NOTIFIER_OPTIONS, a JSON object. Empty if the variable is
    not set. Raises ConfigurationError, which Airflow shows as the DAG's import error, if it cannot be loaded or
    called."""
    named = environment.get(VARIABLE, "")
    if not named:
        return []
    if not _NAME.fullmatch(named):
        raise ConfigurationError(f"{VARIABLE}={named[:80]!r} is not MODULE:NAME, like my_alerts:page")
    module, _, name = named.partition(":")
    try:
        loaded = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"{VARIABLE}={named} cannot be loaded: {error}; install the package that has it beside Airflow, or correct "
            "the name"
        ) from error
    notifier = _make(loaded, environment.get(OPTIONS, "")) if isinstance(loaded, type) else loaded
    if not callable(notifier):
        raise ConfigurationError(f"{VARIABLE}={named} is not a notifier: it cannot be called")
    return [notifier]


def _make(notifier: type, options: str) -> Any:
    try:
        arguments = json.loads(options or "{}")
    except ValueError as error:
        raise ConfigurationError(f"{OPTIONS} is not JSON ({error}); write an object, like {_EXAMPLE}") from None
    if not isinstance(arguments, dict):
        raise ConfigurationError(f"{OPTIONS} is no JSON object; write one, like {_EXAMPLE}")
    try:
        return notifier(**arguments)
    except TypeError as error:
        raise ConfigurationError(f"{notifier.__name__} does not take what {OPTIONS} has: {error}") from error
