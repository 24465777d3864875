"""Python workers of Spark that run one task after another."""

from __future__ import annotations

import gc
import sys

_frozen = 0


def freeze_modules() -> None:
    """Take what this process has loaded so far out of garbage collection, again when it has loaded more. Call it where
    a task begins: what a task loads late is frozen with the next one.

    Spark's worker collects all garbage after each task: of the libraries' some hundred thousand objects, for 30 ms. A
    batch of some hundred records takes not much longer in all.
    """
    global _frozen
    if len(sys.modules) > _frozen:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000)  # a task holds many objects at once, and hardly makes garbage
        _frozen = len(sys.modules)
