"""The names in a PromQL expression: metrics, their labels, and the values that these have."""

from __future__ import annotations

import re
from typing import Final

from tests.signals import FLIGHTS

from onceover.observability.metrics import METRICS, UP

EXPOSED: Final = {UP: ()} | {each.name: each.labels for each in METRICS}
VALUES: Final = {(each.name, each.label): set(map(str, each.values(FLIGHTS))) for each in METRICS}
"""Of the one label besides `pipeline`: those that a pipeline exposes."""

_SELECTOR: Final = re.compile(r"(onceover_[a-z_]+)(?:\{([^}]*)\})?")
_MATCHER: Final = re.compile(r'([a-z_]+)(=~|!=|!~|=)"([^"]*)"')
_KEPT: Final = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
_LEFT_OUT: Final = re.compile(r"\b(?:without|ignoring)\s*\(([^)]*)\)")


def metrics_of(expression: str) -> set[str]:
    return {name for name, _ in _SELECTOR.findall(expression)}


def labels_of(expression: str) -> set[str]:
    """Those that all its metrics have."""
    return set.intersection(*(set(EXPOSED[name]) for name in metrics_of(expression)))


def mistakes_of(expression: str) -> list[str]:
    """Names that nothing exposes; a right expression has none."""
    found = []
    for name, matchers in _SELECTOR.findall(expression):
        if name not in EXPOSED:
            found.append(name)
            continue
        for label, operator, value in _MATCHER.findall(matchers):
            if label not in EXPOSED[name]:
                found.append(f"{name}{{{label}}}")
            elif label != "pipeline":  # whose values are a dashboard's choice
                values = value.split("|") if "~" in operator else [value]
                found += [f'{name}{{{label}="{one}"}}' for one in values if one not in VALUES[name, label]]
    for pattern, combine in ((_KEPT, set[str].intersection), (_LEFT_OUT, set[str].union)):
        for group in pattern.findall(expression):
            there = combine(*(set(EXPOSED[name]) for name in metrics_of(expression)))
            found += [label for label in map(str.strip, group.split(",")) if label not in there]
    return found
