"""A value of CSV as the JSON object of its fields, so that CSV is typed exactly as JSON is."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from onceover.formats.undecodable import LARGEST, UndecodableError
from onceover.model.contract import CsvLayout

Kind = Literal["string", "number", "boolean"]

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_QUOTE: Final = json.JSONEncoder(ensure_ascii=False).encode  # `dumps` makes an encoder each time
_LONGEST_NUMBER: Final = 1_000
"""Characters: Spark's reader takes no longer number."""


_TOO_LARGE: Final = f"more than {LARGEST >> 20} MiB of CSV"


@dataclass(frozen=True, slots=True)
class CsvField:
    """A field by its place in the row, and the JSON that its type is read from."""

    name: str
    kind: Kind


class CsvReader:
    """Reads rows of one layout. A field that is not written as JSON writes its kind becomes a string, which the JSON
    reader refuses as it does in JSON."""

    def __init__(self, layout: CsvLayout, fields: Sequence[CsvField]) -> None:
        csv.field_size_limit(LARGEST)
        self._layout, self._kinds = layout, [field.kind for field in fields]
        self._names = [_QUOTE(field.name) for field in fields]

    def read(self, value: bytes) -> bytes:
        """Return the JSON object of a value that is one row, with or without a line's end. Raises UndecodableError for
        any other."""
        layout = self._layout
        if len(value) > LARGEST:
            raise UndecodableError(_TOO_LARGE)
        try:
            text = value.decode()
            row = next(csv.reader((text,), delimiter=layout.separator, quotechar=layout.quote, strict=True))
        except UnicodeDecodeError as error:
            raise UndecodableError("not UTF-8") from error
        except csv.Error as error:
            raise UndecodableError("not one CSV row") from error
        row = row or [""]
        if len(row) != len(self._names):
            raise UndecodableError(f"not {len(self._names):,} CSV fields")
        fields = zip(self._names, self._kinds, row, strict=True)
        members = (f"{name}:{self._write(kind, text)}" for name, kind, text in fields)
        document = f"{{{','.join(members)}}}".encode()
        if len(document) > LARGEST:  # a control character takes six bytes of JSON
            raise UndecodableError(_TOO_LARGE)
        return document

    def _write(self, kind: Kind, text: str) -> str:
        if text == self._layout.null:
            return "null"
        if kind == "number" and len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text):
            return text
        if kind == "boolean" and text in ("true", "false"):
            return text
        return _QUOTE(text)
