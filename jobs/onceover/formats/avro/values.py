"""Avro values of a batch as rows of the reader's schema, each by the schema that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from onceover.errors import RegistryAwayError
from onceover.formats.avro.arrow_types import find_row_type
from onceover.formats.avro.cursor import PADDING, Cursor
from onceover.formats.avro.resolution import UnresolvedError, resolve
from onceover.formats.avro.scalars import TypeReader
from onceover.formats.avro.schema import AvroSchemaError, parse_schema
from onceover.formats.framed import HEAD, NO_GUIDS, NOT_FRAMED, GuidHeader, SchemaName, Writers, WriterUnknownError
from onceover.formats.undecodable import UndecodableError


@dataclass(frozen=True, slots=True)
class AvroReader:
    """Reads values by `reader`, the text of a schema. With `writers`, values are in Confluent's wire format; without,
    `reader` wrote them."""

    reader: str
    writers: Writers | None = None

    @property
    def type(self) -> pa.StructType:
        return find_row_type(_parse(self.reader))

    def read(self, values: pa.Array, guids: Mapping[int, GuidHeader] = NO_GUIDS) -> tuple[pa.Array, pa.Array]:
        """Return a row for each of these binary values, and why one is none; both are null of a null. `guids` are those
        that headers name, by row. Raises WriterUnknownError."""
        bounds = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1]
        data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[: bounds[-1] if len(bounds) else 0]
        data = np.concatenate([data, np.zeros(PADDING, np.uint8)])
        faults = np.full(len(values), None, object)
        starts, ends = bounds[:-1].astype(np.int64), bounds[1:].astype(np.int64)
        present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        names = np.zeros(len(values), object)
        if self.writers is not None:
            is_named = np.isin(present, list(guids))
            is_framed = ((ends - starts)[present] >= HEAD) & ~is_named
            is_framed[is_framed] = data[starts[present][is_framed]] == 0
            faults[present[~(is_framed | is_named)]] = NOT_FRAMED
            framed, present = present[is_framed], present[is_framed | is_named]
            head = data[starts[framed][:, None] + np.arange(1, HEAD)].astype(np.int64)
            names[framed] = (head @ (256 ** np.arange(HEAD - 2, -1, -1))).astype(object)
            starts[framed] += HEAD
            names[list(guids)] = [header.guid for header in guids.values()]
        parts, places = [pa.nulls(1, self.type)], np.zeros(len(values), np.int64)
        size = 1
        of_name: dict[SchemaName, list[int]] = {}
        for row, name in zip(present.tolist(), names[present].tolist(), strict=True):
            of_name.setdefault(name, []).append(row)
        for name, of_one in of_name.items():
            rows = np.array(of_one)
            step = self._find_step(name, int(rows[0]))
            if isinstance(step, str):
                faults[rows] = step
                continue
            cursor = Cursor(data, starts[rows], ends[rows])
            parts.append(step.read(cursor, np.arange(len(rows))))
            cursor.refuse(np.flatnonzero(cursor.at < cursor.end), "bytes behind the Avro value")
            for row, why in cursor.faults.items():
                faults[rows[row]] = f"schema {name}: {why}" if self.writers is not None else why
            places[rows] = np.where(cursor.is_refused, 0, size + np.arange(len(rows)))
            size += len(rows)
        row_of = pa.array(places, mask=places == 0)
        return pa.concat_arrays(parts).take(row_of), pa.array(faults, pa.string())

    def _find_step(self, name: SchemaName, row: int) -> TypeReader | str:
        """Return what reads values of that schema, or why none is read."""
        if self.writers is None:
            return _resolve(self.reader, self.reader)
        try:
            step = _resolve(self.writers.read(name), self.reader)
        except UndecodableError as error:
            return str(error)
        except RegistryAwayError as error:
            raise WriterUnknownError(row, error) from error
        return f"schema {name}: {step}" if isinstance(step, str) else step


_parse = lru_cache(maxsize=64)(parse_schema)


@lru_cache(maxsize=2048)
def _resolve(writer: str, reader: str) -> TypeReader | str:
    try:
        return resolve(parse_schema(writer), _parse(reader))[0]
    except (UnresolvedError, AvroSchemaError) as error:
        return str(error)


def explain_difference(writer: str, reader: str) -> tuple[bool, str]:
    """Return whether values of that writer's schema are read, and how they differ from the reader's own: nothing where
    they do not."""
    try:
        return True, "; ".join(resolve(parse_schema(writer), _parse(reader))[1])
    except (UnresolvedError, AvroSchemaError) as error:
        return False, str(error)
