"""What tasks in Python read of records for a contract's SQL, in columns of their own: Spark reads the rest.

    headers -> HEADER_MAP     value -decompressed, unframed, CSV as JSON-> DOCUMENT, or DOCUMENT_FAULT -> PLAIN
                              value -decompressed-> Avro, Protobuf -> PLAIN, or DOCUMENT_FAULT
                              key -> Avro, Protobuf -> KEY_ROW, or KEY_FAULT

Ingest's tasks decode what they have just read from Kafka; records from elsewhere take one more turn through Python.
Raw has what Kafka had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, DataType, NumericType, StructType

from onceover.errors import RegistryAwayError
from onceover.formats import header_map
from onceover.formats.avro.values import AvroReader
from onceover.formats.compression import decompress
from onceover.formats.csv_row import CsvField, CsvReader, Kind
from onceover.formats.framed import NO_GUIDS, WriterUnknownError, find_guids, read_payload
from onceover.formats.protobuf.values import ProtobufReader
from onceover.formats.undecodable import UndecodableError
from onceover.model.contract import Contract, CsvLayout
from onceover.raw.schema_files import SchemaFiles
from onceover.spark.contract_check import analyze_contract
from onceover.spark.plain_json import PLAIN, make_plain_type, read_plain

HEADER_MAP: Final = "header_map"
DOCUMENT: Final = "document"
"""The value that the format is read from, where it is not Kafka's; a string of any bytes, which Spark copies less."""
DOCUMENT_FAULT: Final = "document_fault"
KEY_ROW: Final = "key_row"
KEY_FAULT: Final = "key_fault"
_TOGETHER: Final = 16 * 1024 * 1024
"""Bytes of documents in one batch, or one larger: a batch of bombs would not fit into memory."""
Reader = AvroReader | ProtobufReader


@dataclass(frozen=True, slots=True)
class Decoding:
    """What is decoded; `fields` are the columns that it adds to records with `key`, `headers` and `value`. `reader`
    reads what `plain` is the type of."""

    has_headers: bool = False
    compression: str = "none"
    wire_format: str = "none"
    csv: CsvLayout | None = None
    csv_fields: tuple[CsvField, ...] = ()
    plain: pa.StructType | None = None
    reader: Reader | None = None
    key_reader: Reader | None = None

    @property
    def has_document(self) -> bool:
        return self.reader is None and self._rewrites

    @property
    def has_faults(self) -> bool:
        return self.reader is not None or self._rewrites

    @property
    def _rewrites(self) -> bool:
        return self.csv is not None or self.compression != "none" or self.wire_format != "none"

    @property
    def fields(self) -> list[pa.Field]:
        columns = [(HEADER_MAP, header_map.TYPE)] if self.has_headers else []
        columns += [(DOCUMENT, pa.string())] if self.has_document else []
        columns += [(DOCUMENT_FAULT, pa.string())] if self.has_faults else []
        columns += [(PLAIN, self.plain)] if self.plain is not None else []
        columns += [(KEY_ROW, self.key_reader.type), (KEY_FAULT, pa.string())] if self.key_reader else []
        return [pa.field(*column) for column in columns]

    def decode(self, records: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        """Yield all records in order, in batches, each with the columns of `fields`. Raises RegistryAwayError, with the
        first record that waits, while a schema registry does not say what wrote a value."""
        start = 0
        for documents, faults in self._read_documents(records.column("value")):
            part = records.slice(start, len(documents))
            start += len(part)
            added = [header_map.read_header_maps(part.column("headers"))] if self.has_headers else []
            rows, more = self._read_rows(part, documents)
            added += [documents.view(pa.string())] if self.has_document else []
            added += [pc.coalesce(faults, more)] if self.has_faults else []
            added += [rows] if self.plain is not None else []
            added += _read(self.key_reader, part, part.column("key"), "key") if self.key_reader else ()
            yield part, added

    def add(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part, added in self.decode(batch):
                names = [*part.schema.names, *(field.name for field in self.fields)]
                yield pa.RecordBatch.from_arrays([*part.columns, *added], names)

    def _read_rows(self, records: pa.RecordBatch, documents: pa.Array) -> tuple[pa.Array | None, pa.Array]:
        no_faults = pa.nulls(len(records), pa.string())
        if self.reader is None:
            return read_plain(documents, self.plain) if self.plain is not None else None, no_faults
        return _read(self.reader, records, documents, "value")

    def _read_documents(self, values: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield documents with their faults: none has both, and a value of null none."""
        if self.compression == "none" and not self.has_document:
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
                if document is not None and self.wire_format != "none" and not self.reader:
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


def find_decoding(
    spark: SparkSession, contract: Contract, schemas: SchemaFiles | None = None, *, plain: bool = False
) -> Decoding:
    """Return what the contract's SQL needs; with `plain`, the fields of plain values too, where the format has them.
    `schemas` has those that values in a registry's wire format were written with. Raises as `check_contract`."""
    checked = analyze_contract(spark, contract)
    fields = tuple(CsvField(field.name, _find_kind(field.dataType)) for field in checked.schema.fields)
    if contract.needs_registry and schemas is None:
        raise ValueError("name the folder of schemas")
    writers = schemas if contract.needs_registry else None
    reader = _make_reader(contract.format, contract.reader_schema, contract.message, writers)
    key_reader = _make_reader(contract.key_format, contract.key_schema, contract.key_message, writers)
    plain_type = make_plain_type(checked.schema) if plain else None
    return Decoding(
        checked.uses_headers,
        contract.compression,
        contract.wire_format,
        contract.csv,
        fields if contract.csv else (),
        reader.type if reader else plain_type,
        reader,
        key_reader,
    )


def _make_reader(form: str, schema: str, message: str, writers: SchemaFiles | None) -> Reader | None:
    writers = writers and replace(writers, kind=form)
    if form == "protobuf":
        return ProtobufReader(schema, message, writers)
    return AvroReader(schema, writers) if form == "avro" else None


def _read(reader: Reader, records: pa.RecordBatch, written: pa.Array, part: str) -> tuple[pa.Array, pa.Array]:
    """Return a row for each of these values or keys of the records, and why one is none."""
    guids = find_guids(records.column("headers"), part) if reader.writers else NO_GUIDS
    try:
        return reader.read(written.view(pa.binary()), guids)
    except WriterUnknownError as error:
        at = [records.column(name)[error.row].as_py() for name in ("kafka_partition", "offset")]
        raise RegistryAwayError("Kafka partition {}, offset {} waits: {}".format(*at, error)) from error


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
