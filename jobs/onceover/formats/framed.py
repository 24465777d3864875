"""Values and keys in Confluent's wire format: the byte 0, a schema's ID in four bytes, then the payload; or the payload
alone, with the schema's GUID in a header.

Serializers that know a schema registry write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onceover.errors import RegistryAwayError
from onceover.formats.undecodable import UndecodableError
from onceover.lines.escapes import unescape_headers

HEAD: Final = 5
"""Bytes before the payload."""
NOT_FRAMED: Final = "not in Confluent's wire format"
_GUID_END: Final = 17
SchemaName = int | str
"""A schema's ID, or its GUID."""


class Writers(Protocol):
    """The schemas that wrote values, by their names in a registry."""

    def read(self, name: SchemaName) -> str:
        """Return the schema's text. Raises UndecodableError for one that does not exist, RegistryAwayError for one that
        is not known yet."""


class WriterUnknownError(RegistryAwayError):
    """The schema that wrote the value of a `row` is not known yet."""

    def __init__(self, row: int, error: RegistryAwayError) -> None:
        super().__init__(str(error))
        self.row = row


@dataclass(frozen=True, slots=True)
class GuidHeader:
    """The GUID of the schema, and the bytes behind it: of Protobuf, the message's place."""

    guid: str
    rest: bytes


NO_GUIDS: Final[Mapping[int, GuidHeader]] = MappingProxyType({})


def find_guids(headers: pa.Array, part: str) -> Mapping[int, GuidHeader]:
    """Return what headers name of the `part`, `value` or `key`, by the row; empty where they name nothing."""
    name = f"__{part}_schema_id"
    rows = np.flatnonzero(pc.match_substring(headers, name).fill_null(False).to_numpy(zero_copy_only=False)).tolist()
    found = {row: dict(unescape_headers(headers[row].as_py())).get(name) or b"" for row in rows}
    return {
        row: GuidHeader(str(UUID(bytes=value[1:_GUID_END])), value[_GUID_END:])
        for row, value in found.items()
        if len(value) >= _GUID_END and value[0] == 1
    }


def read_payload(value: bytes) -> bytes:
    """Return what follows the schema's ID. Raises UndecodableError for a value without one."""
    if len(value) < HEAD or value[0] != 0:
        raise UndecodableError(NOT_FRAMED)
    return value[HEAD:]
