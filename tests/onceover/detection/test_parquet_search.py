"""The search of Parquet files for offsets of a hole: only those that the ledger does not know are read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from bench import large_ledger
from bench.large_ledger import start_of
from pyarrow import parquet

from onceover.detection.parquet_search import find_held_in_parquet, find_offsets
from onceover.errors import TerminalError
from onceover.ledger.database import Connection
from onceover.ledger.found_parquet import list_known_digests
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawFile
from onceover.raw.layout import Layout

ONE, OTHER, THIRD = KafkaPartition("00c0ffee", 0), KafkaPartition("00c0ffee", 1), KafkaPartition("0badcafe", 0)


def write(*ids: tuple[KafkaPartition, int]) -> bytes:
    sources = [source for source, _ in ids]
    columns: dict[str, Any] = {
        "generation": [source.generation for source in sources],
        "kafka_partition": pa.array([source.kafka_partition for source in sources], pa.int32()),
        "offset": [offset for _, offset in ids],
        "value": [b"{}"] * len(ids),
    }
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, row_group_size=3)
    return sink.getvalue()


def of(source: KafkaPartition, start: int, end: int) -> OffsetRange:
    return OffsetRange(source, start, end)


FILE = write(*((ONE, n) for n in (3, 4, 5, 9, 12)), (OTHER, 7), (THIRD, 8))


@pytest.mark.parametrize(
    ("wanted", "held"),
    [
        ([of(ONE, 0, 3), of(ONE, 6, 9), of(ONE, 13, 99), of(OTHER, 8, 9), of(THIRD, 0, 8)], []),
        ([of(ONE, 5, 7), of(ONE, 9, 10), of(OTHER, 0, 99)], [of(ONE, 5, 6), of(ONE, 9, 10), of(OTHER, 7, 8)]),
        ([of(THIRD, 8, 9)], [of(THIRD, 8, 9)]),
    ],
)
def test_offsets_of_the_wanted_partitions_are_found(wanted: list[OffsetRange], held: list[OffsetRange]) -> None:
    assert sorted(find_offsets(FILE, wanted)) == held


@pytest.fixture
def context(connection: Connection) -> Iterator[SimpleNamespace]:
    built = large_ledger.build(connection, "unknown", 3)
    held: dict[str, bytes] = {}
    layout = Layout("/raw", "unknown")
    digests = dict(list_known_digests(connection, "unknown", [start_of(n) for n in range(3)]))

    def list_files() -> list[RawFile]:
        starts = {layout.parquet_file(s, d): s for s in digests for d in (digests[s], Digest(9, 9))}
        return [RawFile(path, len(content), window_start=starts[path]) for path, content in held.items()]

    files = SimpleNamespace(list_parquet_files=list_files, read_bytes=lambda path, start, end: [held[path][start:end]])
    yield SimpleNamespace(name="unknown", ledger=connection, layout=layout, files=files, digests=digests, held=held)
    large_ledger.drop(connection, built)


@pytest.mark.stack
def test_file_of_no_certificate_is_read(context: Any) -> None:
    lost, start = [of(ONE, 5, 7)], start_of(1)
    context.held[context.layout.parquet_file(start, context.digests[start])] = b"not read"
    assert find_held_in_parquet(context, lost) is None
    path = context.layout.parquet_file(start, Digest(9, 9))
    context.held[path] = FILE
    assert find_held_in_parquet(context, lost) == (path, of(ONE, 5, 6))
    assert find_held_in_parquet(context, [of(ONE, 6, 7)]) is None
    for content in (FILE[:-20], b"", FILE.replace(b"offset", b"others")):
        context.held[path] = content
        with pytest.raises(TerminalError, match="put the whole file back"):
            find_held_in_parquet(context, lost)
