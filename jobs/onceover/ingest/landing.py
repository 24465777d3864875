"""Step 3's other side: each window's pieces appended to its file by one task; landings and aggregated rows return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from onceover.errors import AccessDeniedError, TransientError, is_denied
from onceover.ingest.framing import QUARANTINE, SHARD_END, SUM_FIELDS, hash_text
from onceover.kafka.shard_read import ShardRead, parse_shard
from onceover.lines.copy_text import format_rows
from onceover.lines.digest_sums import WIDTH
from onceover.lines.grouping import Grouping
from onceover.model.batch import Landing, LandingPart
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition
from onceover.model.window import from_ms
from onceover.raw.layout import Layout
from onceover.raw.store import LeaseHeldError
from onceover.raw.window_files import WindowFiles
from onceover.spark.python_worker import freeze_modules

RESULT: Final = pa.schema(
    [
        ("window_ms", pa.int64()),
        ("byte_start", pa.int64()),
        ("byte_end", pa.int64()),
        ("proved", pa.bool_()),
        ("sums", pa.binary()),
        ("text", pa.binary()),  # a window's rows as COPY text, a shard's end as it came
        ("error", pa.string()),
        ("held_path", pa.string()),
    ]
)


class AppendFailedError(TransientError):
    """An append of this batch failed; `held_paths` are files whose lease a dead writer may still hold."""

    def __init__(self, message: str, held_paths: tuple[str, ...]) -> None:
        super().__init__(message)
        self.held_paths = held_paths


@dataclass(frozen=True, slots=True)
class Appended:
    """What the tasks of a batch returned: shards as they were read, landings, the largest event time by Kafka
    partition, and the windows' aggregated rows, a line of COPY text each."""

    shards: list[ShardRead]
    landings: list[Landing]
    newest_ms: dict[int, int]
    rows: list[bytes]


@dataclass(frozen=True, slots=True)
class Appending:
    """Where a batch's pieces go; `grouping` joins the rows that several tasks grouped."""

    address: str
    layout: Layout
    quarantine_day: date
    grouping: Grouping

    def append(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Append these pieces, in order of their windows, each window's by one request; yield rows of RESULT.

        The digests of a landing are those of the pieces that were sent. The first append that fails is the last one.
        """
        freeze_modules()
        files: WindowFiles | None = None
        for window_ms, of_window in groupby(_list_pieces(pieces), key=lambda piece: piece.window_ms):
            if window_ms == SHARD_END:
                yield _make_results([{"window_ms": window_ms, "text": piece.text.to_pybytes()} for piece in of_window])
                continue
            in_quarantine = window_ms == QUARANTINE
            path = self.layout.quarantine_file(self.quarantine_day) if in_quarantine else self.layout.window_file(
                from_ms(window_ms)
            )  # fmt: skip
            tally = _Tally()
            try:
                files = files or WindowFiles(self.address, self.layout)  # a session must not cross a fork
                done = files.append(path, _stream(of_window, tally))
            except (TransientError, AccessDeniedError) as error:
                held = error.path if isinstance(error, LeaseHeldError) else None
                yield _make_results([{"window_ms": window_ms, "error": str(error), "held_path": held}])
                return  # the attempt has failed: more appends would only make more to repair
            text = b"" if in_quarantine else format_rows(tally.join_rows(self.grouping))
            yield _make_results(
                [
                    {"window_ms": window_ms, "byte_start": done.start, "byte_end": done.end, "proved": done.proved,
                     "sums": np.concatenate(tally.sums).tobytes(), "text": text}
                ]
            )  # fmt: skip


def collect_results(rows: Iterable[Any], generation: str, quarantine_day: date) -> Appended:
    """Return what these rows of RESULT say. Raise AppendFailedError if any append failed; others may have happened."""
    results = list(rows)
    if errors := [row for row in results if row.error]:
        if denied := next((row.error for row in errors if is_denied(row.error)), None):
            raise AccessDeniedError(denied)
        raise AppendFailedError(errors[0].error, tuple(row.held_path for row in errors if row.held_path))
    shards = [parse_shard(bytes(row.text)) for row in results if row.window_ms == SHARD_END]
    landings, newest, lines = [], dict[int, int](), list[bytes]()
    for row in results:
        if row.window_ms == SHARD_END:
            continue
        sums = np.frombuffer(bytes(row.sums), np.int64).reshape(-1, SUM_FIELDS)
        parts = []
        for kafka_partition in np.unique(sums[:, 0]).tolist():
            of_it = sums[sums[:, 0] == kafka_partition]
            digest = Digest(*of_it[:, 1 : 1 + WIDTH].sum(axis=0).tolist())
            parts.append(LandingPart(KafkaPartition(generation, kafka_partition), digest))
            if row.window_ms != QUARANTINE:
                newest[kafka_partition] = max(newest.get(kafka_partition, 0), int(of_it[:, -1].max()))
        in_quarantine = row.window_ms == QUARANTINE
        landings.append(
            Landing(
                window_start=None if in_quarantine else from_ms(row.window_ms),
                quarantine_day=quarantine_day if in_quarantine else None,
                byte_start=row.byte_start,
                byte_end=row.byte_end,
                proved=row.proved,
                parts=tuple(parts),
            )
        )
        lines += bytes(row.text).splitlines() if row.text else []
    return Appended(shards, landings, newest, lines)


@dataclass(frozen=True, slots=True)
class _Piece:
    window_ms: int
    text: pa.Buffer
    hash: int
    sums: np.ndarray | None
    rows: pa.Buffer | None


@dataclass(slots=True)
class _Tally:
    """Sums and grouped rows of the pieces of one append."""

    sums: list[np.ndarray] = field(default_factory=list)
    rows: list[pa.Table] = field(default_factory=list)

    def add(self, piece: _Piece) -> None:
        if piece.sums is not None:
            self.sums.append(piece.sums)
        if piece.rows is not None:
            self.rows.append(pa.ipc.open_stream(piece.rows).read_all())

    def join_rows(self, grouping: Grouping) -> pa.Table:
        return grouping.group(pa.concat_tables(self.rows))


def _stream(pieces: Iterator[_Piece], tally: _Tally) -> Iterator[memoryview]:
    """Yield the bytes of one append, tallying each piece. Raise TransientError for one that was damaged on its way."""
    yield memoryview(b"\n")  # keeps a torn tail apart from the first line
    for piece in pieces:
        if hash_text(piece.text) != piece.hash:
            raise TransientError("lines changed on their way between two of Spark's tasks; the batch is read again")
        tally.add(piece)
        yield memoryview(piece.text)


def _list_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[_Piece]:
    for batch in batches:
        windows, _, text, hashes, sums, rows = batch.columns
        for number, (window_ms, text_hash) in enumerate(zip(windows.to_pylist(), hashes.to_pylist(), strict=True)):
            summed = sums[number].as_buffer()
            yield _Piece(
                window_ms,
                text[number].as_buffer(),
                text_hash,
                None if summed is None else np.frombuffer(summed, np.int64).reshape(-1, SUM_FIELDS).copy(),
                rows[number].as_buffer(),
            )


def _make_results(rows: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=RESULT)
