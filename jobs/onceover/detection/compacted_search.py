"""Search of compacted files that the ledger does not know for records that a person is about to accept as lost.

A ledger restored from a backup does not know what was compacted after it. A file named for one of the ledger's own
certificates holds only records that have landed; any other may be all that is left of a record in a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from onceover.context import PipelineContext
from onceover.errors import TerminalError
from onceover.ledger.found_compacted import list_known_digests
from onceover.lines.chunks import Piece
from onceover.lines.ranges import number_source, number_sources
from onceover.lines.read import read
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.raw_file import RawFile
from onceover.raw.frozen_file import FrozenFiles


def find_held_in_compacted(context: PipelineContext, lost: Sequence[OffsetRange]) -> tuple[str, OffsetRange] | None:
    """Return the path of the first unknown compacted file that holds one of these offsets, with that offset; None if no
    file does. `lost` are disjoint, in order.

    Raises TerminalError for an unknown file that cannot be read: it may hold them.
    """
    for file in _list_unknown(context):
        try:
            for offset in find_offsets(FrozenFiles(context.raw_address).read_lines(file.path, file.length), lost):
                return file.path, offset
        except TerminalError as error:
            raise TerminalError(
                f"{file.path} cannot be read ({error}), and may hold the records: put the whole file back, or move it "
                "out of the pipeline's folder"
            ) from error
    return None


def _list_unknown(context: PipelineContext) -> list[RawFile]:
    """Return the windows' compacted files that are named for no certificate or compaction of this ledger, in order."""
    files = context.files.list_compacted_files()
    known = {
        context.layout.compacted_file(start, digest)
        for start, digest in list_known_digests(
            context.ledger, context.name, sorted({file.window_start for file in files if file.window_start})
        )
    }
    return [file for file in files if file.path not in known]


def find_offsets(pieces: Iterable[Piece], wanted: Sequence[OffsetRange]) -> Iterator[OffsetRange]:
    """Yield each of these offsets of which the lines have a record. `wanted` are disjoint, in order. Raise
    TerminalError for a damaged line."""
    bounds: Mapping[KafkaPartition, tuple[np.ndarray, np.ndarray]] = {
        source: (np.array([piece.start for piece in ranges]), np.array([piece.end for piece in ranges]))
        for source, group in groupby(wanted, key=lambda piece: piece.source)
        if (ranges := list(group))
    }
    for at_byte, text in pieces:
        lines = read(text)
        if not lines.intact.all():
            raise TerminalError(f"a line after byte {at_byte} of its text is damaged")
        numbers = number_sources(lines.generation, lines.kafka_partition)
        for source, (starts, ends) in bounds.items():
            offsets = lines.offset[numbers == number_source(source)]
            at = np.searchsorted(starts, offsets, "right") - 1
            for offset in offsets[(at >= 0) & (offsets < ends[at])]:
                yield OffsetRange(source, int(offset), int(offset) + 1)
