"""The escapes of a line's fields: any bytes as bytes without TAB, newline and carriage return, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from onceover.errors import TerminalError
from onceover.model.record import Header

NULL: Final = rb"\N"
_SPECIAL = re.compile(rb"[\\\t\n\r]")


class CorruptLineError(TerminalError):
    """Bytes that `encode` did not write: torn, damaged or foreign. `problem` names the first difference."""

    def __init__(self, problem: str, size: int) -> None:
        super().__init__(f"a line of {size} bytes is corrupt: {problem}; repair the window, which reads around it")
        self.problem = problem


def escape(data: bytes) -> bytes:
    """Return the bytes without TAB, newline and carriage return."""
    if not _SPECIAL.search(data):
        return data
    escaped = data.replace(b"\\", rb"\\")
    return escaped.replace(b"\t", rb"\t").replace(b"\n", rb"\n").replace(b"\r", rb"\r")


def unescape(field: bytes) -> bytes:
    r"""Undo `escape`. Escaped backslashes become `\x` first, which no escape uses, so that `\\t` does not become a
    TAB."""
    if b"\\" not in field:
        return field
    text = field.replace(rb"\\", rb"\x")
    text = text.replace(rb"\t", b"\t").replace(rb"\n", b"\n").replace(rb"\r", b"\r")
    return text.replace(rb"\x", b"\\")


def escape_nullable(data: bytes | None) -> bytes:
    return NULL if data is None else escape(data)


def unescape_nullable(field: bytes) -> bytes | None:
    return None if field == NULL else unescape(field)


def escape_headers(headers: Sequence[Header] | None) -> bytes:
    r"""Return the HEADERS field, in Kafka's order: `NAME\=VALUE` joined by `\;`; empty when there are none."""
    if not headers:
        return b""
    return rb"\;".join(escape(_name_bytes(name)) + rb"\=" + escape_nullable(value) for name, value in headers)


def unescape_headers(field: bytes) -> tuple[Header, ...]:
    """Return the headers that `escape_headers` wrote. Raise CorruptLineError for a header without a value."""
    if not field:
        return ()
    headers: list[Header] = []
    for header in field.replace(rb"\\", rb"\x").split(rb"\;"):
        name, separator, value = header.partition(rb"\=")
        if not separator:
            raise CorruptLineError("a header has no value", len(field))
        headers.append((_name(unescape(name)), unescape_nullable(value)))
    return tuple(headers)


def _name_bytes(name: str | bytes) -> bytes:
    return name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")


def _name(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data
