"""The escapes of a line's fields: any bytes as bytes without TAB, newline and carriage return, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from onceover.errors import TerminalError
from onceover.model.record import Header

NULL: Final = rb"\N"
ESCAPES: Final = ((b"\\", rb"\\"), (b"\t", rb"\t"), (b"\n", rb"\n"), (b"\r", rb"\r"))
"""In the order in which they are written: the backslash first."""
UNESCAPES: Final = ((rb"\\", rb"\x"), (rb"\t", b"\t"), (rb"\n", b"\n"), (rb"\r", b"\r"), (rb"\x", b"\\"))
"""In the order in which they are undone: escaped backslashes become an escape first that none is, so that an escaped
backslash before a t does not become a TAB."""
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
    for plain, written in ESCAPES:
        data = data.replace(plain, written)
    return data


def unescape(field: bytes) -> bytes:
    """Undo `escape`."""
    if b"\\" in field:
        for written, plain in UNESCAPES:
            field = field.replace(written, plain)
    return field


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
