"""Values in Confluent's wire format: the byte 0, a schema's ID in four bytes, then the payload.

Serializers that know a schema registry write it.
"""

from __future__ import annotations

from onceover.formats.undecodable import UndecodableError

_HEAD = 5


def read_payload(value: bytes) -> bytes:
    """Return what follows the schema's ID. Raises UndecodableError for a value without one."""
    if len(value) < _HEAD or value[0] != 0:
        raise UndecodableError("not in Confluent's wire format")
    return value[_HEAD:]
