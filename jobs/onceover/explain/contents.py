"""Records with several contents, side by side, for the person who decides which of them counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import xxhash

from onceover.context import PipelineContext
from onceover.errors import OnceoverError
from onceover.lines.escapes import CorruptLineError
from onceover.lines.reference import ID, decode, encode_content
from onceover.model.finding_kinds import CONTESTED
from onceover.model.window import Window, parse_moment

MOST_BYTES: Final = 64 << 20
"""Of each window's file so much is searched for the records."""

MOST_SHOWN_CHARACTERS: Final = 2_000
_Found = dict[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class RecordContent:
    """One content of a record: its `hash`, by which a person chooses it, its time and window, None in quarantine, and
    its value as `text`, None if it was not read."""

    hash: str
    event_time: datetime | None
    window: Window | None
    text: str | None


@dataclass(frozen=True, slots=True)
class ContestedRecord:
    """A record's ID with all its contents."""

    id: str
    contents: tuple[RecordContent, ...]

    @property
    def windows(self) -> set[Window]:
        return {each.window for each in self.contents if each.window is not None}


def list_contested(
    context: PipelineContext, findings: Iterable[Mapping[str, Any]], *, with_text: bool
) -> list[ContestedRecord]:
    """Return the records that a window's findings name, at most 20 of each kind; with their values out of raw if
    `with_text`. Where raw cannot be reached or no longer has one, its text is None."""
    minutes = context.pipeline.contract.window_minutes
    named = [row["evidence"].get("contested", ()) for row in findings if row["kind"] in CONTESTED]
    shown = {each["id"]: each for rows in named for each in rows}.values()  # a conflict is often misdated as well
    times = {(each["id"], c["hash"]): _parse_time(c["event_time"]) for each in shown for c in each["contents"]}
    windows = {key: None if at is None else Window.of(at, minutes) for key, at in times.items()}
    found = _search(context, {w for w in windows.values() if w}, {each["id"] for each in shown}) if with_text else {}
    return [
        ContestedRecord(
            each["id"],
            tuple(
                RecordContent(key[1], times[key], windows[key], found.get(key))
                for key in ((each["id"], c["hash"]) for c in each["contents"])
            ),
        )
        for each in shown
    ]


def _parse_time(value: Any) -> datetime | None:
    return parse_moment(value) if isinstance(value, str) else value


def _search(context: PipelineContext, windows: set[Window], ids: set[str]) -> _Found:
    found: _Found = {}
    wanted = {each.encode() for each in ids}
    for window in sorted(windows, key=lambda each: each.start):
        try:
            for line in _list_lines(context.files.read_window(window.start), wanted):
                record = decode(line).record
                name = xxhash.xxh3_128_hexdigest(encode_content(record))
                text = (record.value or b"").decode("utf-8", "replace")[:MOST_SHOWN_CHARACTERS]
                found[line[ID].decode(), name] = "no value" if record.value is None else text
        except (CorruptLineError, OnceoverError):
            continue  # a content without text says that it was not found
    return found


def _list_lines(chunks: Iterable[bytes], ids: set[bytes]) -> Iterator[bytes]:
    rest, read = b"", 0
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line[ID] in ids)
        read += len(chunk)
        if read >= MOST_BYTES:
            return
    if rest[ID] in ids:
        yield rest
