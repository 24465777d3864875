"""The headers of a record, as raw's lines have them.

The client library does not hand out header names that are not valid UTF-8. Kafka's protocol knows no such names, but
a broker stores them. Such a record does not block: `UNREADABLE_HEADERS`, which no valid name can equal, replaces
all its headers; key, value and timestamp are unchanged. The library cuts a name at a NUL byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import cast

from confluent_kafka import Message

from onceover.lines.escapes import escape_headers
from onceover.model.record import Header

UNREADABLE_HEADERS: Sequence[Header] = ((b"\xff", None),)

# A call through the C API notices that the library returns with an error set. Python 3.11 specializes a frequent method
# call, which would return the broken value and raise the error later.
_call_headers = methodcaller("headers")


def read_headers(record: Message) -> bytes:
    """Return the escaped field of the window file, empty without headers."""
    try:
        headers = cast("Sequence[Header] | None", _call_headers(record))
    except (SystemError, UnicodeError):  # never call twice for a message: the second result holds null pointers
        headers = UNREADABLE_HEADERS
    return escape_headers(headers) if headers else b""
