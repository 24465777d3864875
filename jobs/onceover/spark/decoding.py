"""What tasks in Python read of records for a contract's SQL, in columns of their own: Spark reads the rest.

    headers -> HEADER_MAP     value -decompressed, unframed, CSV as JSON-> DOCUMENT, or DOCUMENT_FAULT -> PLAIN

Ingest's tasks decode what they have just read from Kafka; records from elsewhere take one more turn through Python.
Raw has what Kafka had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, DataType, NumericType, StructType

from onceover.formats import header_map
from onceover.formats.compression import decompress
from onceover.formats.csv_row import CsvField, CsvReader, Kind
from onceover.formats.framed import read_payload
from onceover.formats.undecodable import UndecodableError
from onceover.model.contract import Contract, CsvLayout
from onceover.spark.contract_check import analyze_contract
from onceover.spark.plain_json import PLAIN, make_plain_type, read_plain

HEADER_MAP: Final = "header_map"
DOCUMENT: Final = "document"
"""The value that the format is read from, where it is not Kafka's; a string of any bytes, which Spark copies less."""
DOCUMENT_FAULT: Final = "document_fault"
_TOGETHER: Final = 16 * 1024 * 1024
"""Bytes of documents in one batch, or one larger: a batch of bombs would not fit into memory."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """What is decoded; `fields` are the columns that it adds to records with `headers` and `value`."""

    has_headers: bool = False
    compression: str = "none"
    wire_format: str = "none"
    csv: CsvLayout | None = None
    csv_fields: tuple[CsvField, ...] = ()
    plain: pa.StructType | None = None

    @property
    def has_document(self) -> bool:
        return self.csv is not None or self.compression != "none" or self.wire_format != "none"

    @property
    def fields(self) -> list[pa.Field]:
        columns = [(HEADER_MAP, header_map.TYPE)] if self.has_headers else []
        columns += [(DOCUMENT, pa.string()), (DOCUMENT_FAULT, pa.string())] if self.has_document else []
        columns += [(PLAIN, self.plain)] if self.plain is not None else []
        return [pa.field(*column) for column in columns]

    def decode(self, records: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        """Yield all records in order, in batches, each with the columns of `fields`."""
        start = 0
        for documents in self._read_documents(records.column("value")):
            part = records.slice(start, len(documents[0]))
            start += len(part)
            added = [header_map.read_header_maps(part.column("headers"))] if self.has_headers else []
            added += [documents[0].view(pa.string()), documents[1]] if self.has_document else []
            added += [read_plain(documents[0], self.plain)] if self.plain is not None else []
            yield part, added

    def add(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part, added in self.decode(batch):
                names = [*part.schema.names, *(field.name for field in self.fields)]
                yield pa.RecordBatch.from_arrays([*part.columns, *added], names)

    def _read_documents(self, values: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield documents with their faults: none has both, and a value of null none."""
        if not self.has_document:
            yield values, pa.nulls(len(values), pa.string())
            return
        rows = CsvReader(self.csv, self.csv_fields) if self.csv else None
        documents: list[bytes | None] = []
        faults: list[str | None] = []
        size = 0
        for value in values:
            document, fault = value.as_py(), None
            try:
                if document is not None and self.compression != "none":
                    document = decompress(document, self.compression)
                if document is not None and self.wire_format != "none":
                    document = read_payload(document)
                if document is not None and rows:
                    document = rows.read(document)
            except UndecodableError as error:
                document, fault = None, str(error)
            documents.append(document)
            faults.append(fault)
            size += len(document or b"")
            if size >= _TOGETHER:
                yield pa.array(documents, pa.binary()), pa.array(faults, pa.string())
                documents, faults, size = [], [], 0
        yield pa.array(documents, pa.binary()), pa.array(faults, pa.string())


def find_decoding(spark: SparkSession, contract: Contract, *, plain: bool = False) -> Decoding:
    """Return what the contract's SQL needs; with `plain`, the fields of plain values too, where the format has them.
    Raises as `check_contract`."""
    checked = analyze_contract(spark, contract)
    fields = tuple(CsvField(field.name, _find_kind(field.dataType)) for field in checked.schema.fields)
    return Decoding(
        checked.uses_headers,
        contract.compression,
        contract.wire_format,
        contract.csv,
        fields if contract.csv else (),
        make_plain_type(checked.schema) if plain else None,
    )


def add_decoded(records: DataFrame, decoding: Decoding) -> DataFrame:
    """Return the records with the columns of `decoding` that they lack."""
    missing = [field for field in decoding.fields if field.name not in records.columns]
    if not missing:
        return records
    schema = StructType([*records.schema.fields, *from_arrow_schema(pa.schema(missing)).fields])
    return records.mapInArrow(decoding.add, schema)


def _find_kind(kind: DataType) -> Kind:
    if isinstance(kind, BooleanType):
        return "boolean"
    return "number" if isinstance(kind, NumericType) else "string"
