"""Values in Confluent's wire format: the byte 0, a schema's ID in four bytes, then the payload.

Serializers that know a schema registry write it.
"""

from __future__ import annotations

from typing import Final, Protocol

from onceover.errors import RegistryAwayError
from onceover.formats.undecodable import UndecodableError

HEAD: Final = 5
"""Bytes before the payload."""
NOT_FRAMED: Final = "not in Confluent's wire format"


class Writers(Protocol):
    """The schemas that wrote values, by their IDs in a registry."""

    def read(self, schema_id: int) -> str:
        """Return the schema's text. Raises UndecodableError for one that does not exist, RegistryAwayError for one that
        is not known yet."""


class WriterUnknownError(RegistryAwayError):
    """The schema that wrote the value of a `row` is not known yet."""

    def __init__(self, row: int, error: RegistryAwayError) -> None:
        super().__init__(str(error))
        self.row = row


def read_payload(value: bytes) -> bytes:
    """Return what follows the schema's ID. Raises UndecodableError for a value without one."""
    if len(value) < HEAD or value[0] != 0:
        raise UndecodableError(NOT_FRAMED)
    return value[HEAD:]
