"""The headers of a record, as raw's lines have them.

The client library does not hand out header names that are not valid UTF-8. Kafka's protocol knows no such names, but
a broker stores them. Such a record does not block: `UNREADABLE_HEADERS`, which no valid name can equal, replaces
all its headers; key, value and timestamp are unchanged. The library cuts a name at a NUL byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from confluent_kafka import Message

from onceover.lines.escapes import escape_headers
from onceover.model.record import Header

UNREADABLE_HEADERS: Sequence[Header] = ((b"\xff", None),)


def read_headers(records: Sequence[Message]) -> list[bytes]:
    """Return the escaped field of the window file for each of these records, empty without headers. Read none again:
    the library would return null pointers."""
    # A call through the C API, as `map` makes it, notices that the library returns with an error set. Python 3.11
    # specializes a frequent method call, which would return the broken value and raise the error later.
    answers = cast("Iterator[Sequence[Header] | None]", map(Message.headers, records))
    found: list[Sequence[Header] | None] = []
    while len(found) < len(records):
        try:
            for headers in answers:
                found.append(headers)  # what came before an error stays
        except (SystemError, UnicodeError):
            found.append(UNREADABLE_HEADERS)
    return [escape_headers(headers) if headers else b"" for headers in found]
