"""Step 3's map side: interpreted records become pieces, each the lines of one window with their sums and grouped rows.

Lines are framed where records were interpreted, on every core, so that only text moves to the task of its window,
a few large rows instead of a row a record, and the task has nothing to do but append it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pyspark import TaskContext

from onceover.errors import BatchTooLargeError
from onceover.lines.dedup import mark_changes
from onceover.lines.digest_sums import count_groups
from onceover.lines.frame import add_value, frame_content
from onceover.lines.grouping import Grouping
from onceover.model.windowing import Pieces
from onceover.spark.python_worker import freeze_modules

PLACED: Final = ("kafka_partition", "leader_epoch", "head", "value", "event_ms", "reason")
"""What a task takes of each record, beside keys and measures."""
QUARANTINE: Final = -1
"""In place of the window of records that have none."""
SHARD_END: Final = -2
"""In place of the window of a shard's end, whose text is its `ShardRead`."""
PIECE: Final = pa.schema(
    [
        ("window_ms", pa.int64()),
        ("place", pa.int64()),  # in which the pieces of a window are appended
        ("text", pa.string()),  # any bytes: Spark copies a binary value wherever rows are made
        ("hash", pa.int64()),  # of the text, for the way to the task that appends it
        ("sums", pa.binary()),  # of all lines that begin in this piece and in those after it without sums
        ("rows", pa.binary()),  # of the same lines, grouped, as an Arrow stream; null in quarantine
    ]
)
SUM_FIELDS: Final = 7
"""Of a row of sums: Kafka partition, count, four parts of the digest, newest event time (-1 in quarantine)."""
_PIECES_BYTES: Final = 8 << 20
"""Text that a task holds before its pieces go on."""
_LONGEST_PIECE: Final = 4 << 20
"""Text of one piece: Spark copies each several times, in buffers of twice its size."""
MAX_ROW_BYTES: Final = 64 << 20
"""Grouped rows of one task: the driver holds those of all tasks at once."""
MAX_WINDOWS: Final = 10_000
"""Windows of a batch: each is an append, of which a thousand take a minute."""


@dataclass(frozen=True, slots=True)
class Framing:
    """What a batch's lines have in common: the contract's name, where its windows begin, and by name of each
    key and measure the column with its text. `grouping` groups keys and measures, by `window_ms` too. A task takes
    `most_windows`."""

    contract: str
    pieces: Pieces
    texts: dict[str, str]
    grouping: Grouping
    most_windows: int


@dataclass(slots=True)
class _Waiting:
    """Lines of several windows that wait to go on, and their groups."""

    texts: dict[int, list[memoryview]] = field(default_factory=dict)
    sums: dict[int, list[np.ndarray]] = field(default_factory=dict)
    groups: list[pa.Table] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class _Progress:
    """What a task has framed so far."""

    place: int
    windows: set[int] = field(default_factory=set)
    records: int = 0
    row_bytes: int = 0

    def add(self, waiting: _Waiting, framing: Framing) -> None:
        """Group what waits, and raise BatchTooLargeError if more than one record is more than a task may have."""
        waiting.groups = [framing.grouping.group(pa.concat_tables(waiting.groups))] if waiting.groups else []
        self.windows |= waiting.texts.keys()
        self.row_bytes += sum(framing.grouping.count_text_bytes(table) for table in waiting.groups)
        if self.records > 1 and (len(self.windows) > framing.most_windows or self.row_bytes > MAX_ROW_BYTES):
            raise BatchTooLargeError(
                f"a task of the batch has {len(self.windows):,} windows and {self.row_bytes:,} bytes of aggregated "
                f"rows, of at most {framing.most_windows:,} and {MAX_ROW_BYTES:,}; nothing was appended: lower "
                "max_records_per_batch"
            )


def frame_pieces(batches: Iterator[pa.RecordBatch], framing: Framing) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of these records, of PIECE, and each shard's end.

    Takes PLACED, of which `event_ms` is null in quarantine and SHARD_END for a shard's end, and the columns of
    `framing`. Raises BatchTooLargeError for too many windows or rows.
    """
    freeze_modules()
    context = TaskContext.get()
    waiting, progress = _Waiting(), _Progress((context.partitionId() if context else 0) << 32)
    for batch in batches:
        is_end = batch.column("event_ms").fill_null(QUARANTINE).to_numpy() == SHARD_END
        if is_end.any():
            yield _make_ends(batch.filter(pa.array(is_end)).column("head").view(pa.binary()))
            batch = batch.filter(pa.array(~is_end))
        if batch.num_rows:
            progress.records += batch.num_rows
            _frame(batch, framing, waiting)
        if waiting.size >= _PIECES_BYTES:
            progress.add(waiting, framing)
            yield _make_pieces(waiting, framing.grouping, progress)
            waiting = _Waiting()
    if waiting.texts:
        progress.add(waiting, framing)
        yield _make_pieces(waiting, framing.grouping, progress)


def pack_rows(rows: pa.Table) -> bytes:
    """Return the table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def hash_text(text: bytes | memoryview | pa.Buffer) -> int:
    """Return the XXH3-64 of the text as a signed integer."""
    return int.from_bytes(xxhash.xxh3_64_digest(text), "big", signed=True)


def _frame(batch: pa.RecordBatch, framing: Framing, waiting: _Waiting) -> None:
    event_ms = batch.column("event_ms").fill_null(QUARANTINE).to_numpy()
    window = np.where(event_ms < 0, QUARANTINE, find_starts(event_ms, framing.pieces))
    source = batch.column("kafka_partition").to_numpy()
    if mark_changes(window, source)[1:].any():
        order = np.lexsort((source, window))
        batch, window, source = batch.take(pa.array(order)), window[order], source[order]
    without = int(np.searchsorted(window, 0))
    for start, end in ((0, without), (without, len(window))):
        if start < end:
            records = batch.slice(start, end - start)
            _add_lines(records, window[start:end], source[start:end], framing, waiting)
            if start == without:
                columns = [records.column(name) for name in framing.grouping.schema.names[1:]]
                rows = pa.table([pa.array(window[start:end]), *columns], framing.grouping.schema.names)
                waiting.groups.append(framing.grouping.group(rows))


def find_starts(event_ms: np.ndarray, pieces: Pieces) -> np.ndarray:
    """Return the start of the window that holds each time, in ms."""
    firsts, lasts = np.array(pieces.firsts), np.array(pieces.lasts)
    place = np.maximum(np.searchsorted(firsts, event_ms, "right") - 1, 0) if len(firsts) > 1 else 0
    starts: np.ndarray = np.minimum(lasts[place], event_ms - (event_ms - firsts[place]) % pieces.length)
    return starts


def _add_lines(
    records: pa.RecordBatch, window: np.ndarray, source: np.ndarray, framing: Framing, waiting: _Waiting
) -> None:
    """Frame these records, in order of window and Kafka partition, and note lines and sums of each window."""
    texts = ["reason"] if window[0] == QUARANTINE else list(framing.texts.values())
    event_ms, columns = records.column("event_ms"), [_as_text(records.column(name)) for name in texts]
    content = add_value(*(records.column(name).view(pa.binary()) for name in ("head", "value")))
    framed = frame_content(content, event_ms, records.column("leader_epoch"), framing.contract, columns)
    first = np.flatnonzero(mark_changes(window, source))
    newest = np.maximum.reduceat(event_ms.fill_null(QUARANTINE).to_numpy(), first)
    sums = np.column_stack([source[first].astype(np.int64), count_groups(framed.parts, first), newest])
    waiting.size += len(framed.text)
    window_first = np.flatnonzero(mark_changes(window))
    lines = framed.bounds[[*window_first, len(window)]].tolist()
    rows = [*np.searchsorted(first, window_first).tolist(), len(first)]
    for number, window_ms in enumerate(window[window_first].tolist()):
        waiting.texts.setdefault(window_ms, []).append(framed.text[lines[number] : lines[number + 1]])
        waiting.sums.setdefault(window_ms, []).append(sums[rows[number] : rows[number + 1]])


def _as_text(column: pa.Array) -> pa.Array:
    return column if pa.types.is_string(column.type) else pc.cast(column, pa.string())


def _make_ends(texts: pa.Array) -> pa.RecordBatch:
    ends = [{"window_ms": SHARD_END, "place": 0, "text": text, "hash": hash_text(text)} for text in texts.to_pylist()]
    return pa.RecordBatch.from_pylist(ends, PIECE)


def _make_pieces(waiting: _Waiting, grouping: Grouping, progress: _Progress) -> pa.RecordBatch:
    """Return the pieces of each window, in order."""
    windows = sorted(waiting.texts)
    data = memoryview(b"".join(part for window_ms in windows for part in waiting.texts[window_ms]))
    pieces: list[dict[str, object]] = []
    bounds = [0]
    for window_ms, rows in zip(windows, _split_rows(waiting.groups, windows, grouping), strict=True):
        end = bounds[-1] + sum(map(len, waiting.texts[window_ms]))
        sums: bytes | None = np.concatenate(waiting.sums[window_ms]).tobytes()
        while (start := bounds[-1]) < end:
            bounds.append(min(start + _LONGEST_PIECE, end))
            piece = {"window_ms": window_ms, "place": progress.place, "hash": hash_text(data[start : bounds[-1]])}
            pieces.append({**piece, "sums": sums, "rows": rows})
            sums, rows, progress.place = None, None, progress.place + 1
    buffers = [None, pa.py_buffer(np.array(bounds, np.int32)), pa.py_buffer(data)]
    text = pa.Array.from_buffers(pa.string(), len(pieces), buffers)
    return pa.RecordBatch.from_pylist(pieces, PIECE).set_column(2, PIECE.field("text"), text)


def _split_rows(groups: list[pa.Table], windows: list[int], grouping: Grouping) -> list[bytes | None]:
    rows = groups[0].sort_by("window_ms") if groups else grouping.schema.empty_table()
    of_row = rows.column("window_ms").to_numpy()
    starts, ends = (np.searchsorted(of_row, windows, side).tolist() for side in ("left", "right"))
    return [
        None if window_ms == QUARANTINE else pack_rows(rows.slice(start, end - start))
        for window_ms, start, end in zip(windows, starts, ends, strict=True)
    ]
