"""Exit codes, and the end of each `--help`: examples and the meaning of each code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FAILED: Final = 1
USAGE: Final = 2
TRY_LATER: Final = 75  # as TransientError's
WRONG_TOML: Final = 78  # as ConfigurationError's
INTERRUPTED: Final = 130

EVERYWHERE: Final[Mapping[int, str]] = {
    0: "success",
    FAILED: "a problem was found, and was named",
    USAGE: "the arguments are not valid",
    TRY_LATER: "a service does not answer or is busy; retry later",
    WRONG_TOML: "a pipeline's TOML or an address is not valid",
    INTERRUPTED: "interrupted by Ctrl-C",
}


def format_epilog(*examples: str, codes: Mapping[int, str] | None = None) -> str:
    """Return examples, then exit codes; `codes` replaces meanings where a command has a more precise one."""
    shown = "\n".join(f"  $ {example}" for example in examples)
    meanings = {**EVERYWHERE, **(codes or {})}
    listed = "\n".join(f"  {code:<4} {meaning}" for code, meaning in sorted(meanings.items()))
    return f"Examples:\n{shown}\n\nExit codes:\n{listed}"
