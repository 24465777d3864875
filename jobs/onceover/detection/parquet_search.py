"""Search of Parquet files that the ledger does not know for records that a person is about to accept as lost.

A ledger restored from a backup does not know what was compacted after it. A file named for one of the ledger's own
certificates holds only records that have landed; any other may be all that is left of a record in a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from onceover.context import PipelineContext
from onceover.errors import TerminalError
from onceover.ledger.found_parquet import list_known_digests
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawFile
from onceover.model.record import ID_COLUMNS


def find_held_in_parquet(context: PipelineContext, lost: Sequence[OffsetRange]) -> tuple[str, OffsetRange] | None:
    """Return the path of the first unknown Parquet file that holds one of these offsets, with that offset; None if no
    file does. `lost` are disjoint, in order.

    Raises TerminalError for an unknown file that cannot be read: it may hold them.
    """
    for file in _list_unknown(context):
        content = b"".join(context.files.read_bytes(file.path, 0, file.length))
        try:
            for offset in find_offsets(content, lost):
                return file.path, offset
        except (pa.ArrowException, KeyError) as error:
            raise TerminalError(
                f"{file.path} cannot be read ({error}), and may hold the records: put the whole file back, or move it "
                "out of the pipeline's folder"
            ) from error
    return None


def _list_unknown(context: PipelineContext) -> list[RawFile]:
    """Return the windows' Parquet files that are named for no certificate or compaction of this ledger, in order."""
    files = context.files.list_parquet_files()
    known = {
        context.layout.parquet_file(start, digest)
        for start, digest in list_known_digests(
            context.ledger, context.name, sorted({file.window_start for file in files if file.window_start})
        )
    }
    return [file for file in files if file.path not in known]


def find_offsets(content: bytes, wanted: Sequence[OffsetRange]) -> Iterator[OffsetRange]:
    """Yield each of these offsets of which a Parquet file has a record. `wanted` are disjoint, in order."""
    bounds: Mapping[KafkaPartition, tuple[np.ndarray, np.ndarray]] = {
        source: (np.array([piece.start for piece in pieces]), np.array([piece.end for piece in pieces]))
        for source, group in groupby(wanted, key=lambda piece: piece.source)
        if (pieces := list(group))
    }
    for batch in parquet.ParquetFile(pa.BufferReader(content)).iter_batches(columns=list(ID_COLUMNS)):
        for source, (starts, ends) in bounds.items():
            is_source = pc.and_(
                pc.equal(batch["generation"], source.generation),
                pc.equal(batch["kafka_partition"], source.kafka_partition),
            )
            offsets = batch["offset"].filter(is_source).to_numpy(zero_copy_only=False)
            at = np.searchsorted(starts, offsets, "right") - 1
            for offset in offsets[(at >= 0) & (offsets < ends[at])]:
                yield OffsetRange(source, int(offset), int(offset) + 1)
