"""What the tables of a pipeline's TOML have in common: the form of a mistake, and rules for values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from onceover.config.duration import DURATION_RULE, parse_duration
from onceover.config.mistakes import suggest_name

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
TABLE = ConfigDict(extra="forbid", alias_generator=lambda name: name.removesuffix("_ms"))


def wrong(what: str, remedy: str, within: str = "") -> PydanticCustomError:
    """Return the error for a value, or for a key within it; `{key}` in the remedy becomes the value's own key."""
    return PydanticCustomError("mistake", "{what}; {remedy}", {"what": what, "remedy": remedy, "within": within})


def require_one_of(choices: Collection[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in choices:
            raise wrong(f"{value[:80]!r} is not one of {', '.join(choices)}", suggest_name(value, tuple(choices)))
        return value

    return AfterValidator(check)


def read_duration(least: str = "0s", unless: str | None = None) -> BeforeValidator:
    """Return a validator from a written duration to milliseconds; to None for the word `unless`."""

    def check(value: Any) -> int | None:
        if value == unless:
            return None
        length = parse_duration(value) if isinstance(value, str) else None
        if length is None:
            raise wrong(f"{str(value)[:80]!r} is not a duration", DURATION_RULE)
        if length < (parse_duration(least) or 0):
            raise wrong(f"{value[:80]!r} is too short", f'take at least "{least}"')
        return length

    return BeforeValidator(check)


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^[^\x00]*$")]
Count = Annotated[int, Field(strict=True, ge=1, lt=2**31, description="write a number from 1, below 2^31")]
