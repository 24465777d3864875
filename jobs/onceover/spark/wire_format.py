"""Values in Confluent's wire format, which are no JSON: the byte 0, a schema's ID in four bytes, then the payload.

Serializers that know a schema registry write it. What follows is Avro or Protobuf, or JSON text by JSON Schema.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_FRAMED = "unparseable: Confluent's wire format, schema ID "
_REMEDY = (
    'the producer serializes with a schema registry: set wire_format = "confluent", and format = "avro" or "protobuf" '
    "unless it writes JSON Schema; docs/formats.md has an example of each"
)


def name_framed(value: Column, reason: Column) -> Column:
    """Return the reason for quarantine of a binary value that is no JSON: the given one, or that it is framed.

    IDs of 1 to 2^24 - 1 alone count, as registries give them from 1 on: a big-endian integer begins with the byte 0
    too, and so does UTF-16.
    """
    schema_id = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10)
    is_framed = (
        (F.length(value) >= 5)
        & (F.substring(value, 1, 2) == F.lit(b"\x00\x00"))
        & (F.substring(value, 3, 3) != F.lit(b"\x00\x00\x00"))
    )
    return F.when(is_framed, F.concat(F.lit(_FRAMED), schema_id)).otherwise(reason)


def find_remedy(reason: str) -> str | None:
    """Return what to do about records with this reason, if it is that they are framed."""
    return _REMEDY if reason.startswith(_FRAMED) else None
