"""What `--help` says at its end: examples, and what each exit code means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FAILED: Final = 1
USAGE: Final = 2
TRY_LATER: Final = 75  # as TransientError's
WRONG_TOML: Final = 78  # as ConfigurationError's
INTERRUPTED: Final = 130

EVERYWHERE: Final[Mapping[int, str]] = {
    0: "all is well",
    FAILED: "something is wrong, and was named",
    USAGE: "what was typed cannot be meant",
    TRY_LATER: "a part does not answer or is busy; the same command may succeed later",
    WRONG_TOML: "a pipeline's TOML or an address is wrong",
    INTERRUPTED: "Ctrl-C",
}


def epilog(*examples: str, codes: Mapping[int, str] | None = None) -> str:
    """Examples, then the exit codes; `codes` says more precisely what this command means by some of them."""
    shown = "\n".join(f"  $ {example}" for example in examples)
    meanings = {**EVERYWHERE, **(codes or {})}
    listed = "\n".join(f"  {code:<4} {meaning}" for code, meaning in sorted(meanings.items()))
    return f"Examples:\n{shown}\n\nExit codes:\n{listed}"
