"""The mistakes in a pipeline's TOML, all of a file at once: file, key, problem and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from onceover.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake; `key` is dotted as in `contract.window_minutes`, empty for the file as a whole."""

    file: str
    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.file, self.key, f"{self.what}; {self.remedy}") if part)
        return " ".join(text.split())


class MistakesError(ConfigurationError):
    """All mistakes of a file; the message is one line, `mistakes` holds each."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        count = f"{len(self.mistakes)} mistakes: " if len(self.mistakes) > 1 else ""
        super().__init__(count + " | ".join(str(mistake) for mistake in self.mistakes))


def suggest_name(typed: str, names: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: the closest registered one, or all."""
    close = get_close_matches(typed, names, n=1)
    return f"did you mean `{close[0]}`?" if close else f"known are {', '.join(sorted(names)) or 'none'}"
