"""Pieces become landings and rows, by a file that takes what it is sent; those of several tasks add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.onceover.ingest.framed import (
    FRAMING,
    GENERATION,
    GROUPING,
    HOUR_MS,
    compute_sums,
    encode_row,
    make_batch,
    quarantined,
    record,
    shard_end,
)

from onceover.errors import UnreachableError
from onceover.ingest import landing
from onceover.ingest.framing import frame_pieces
from onceover.ingest.landing import Appended, AppendFailedError, Appending, collect_results
from onceover.kafka.shard_read import ShardRead
from onceover.model.digest import sum_digests
from onceover.model.window import from_ms
from onceover.raw.layout import Layout
from onceover.raw.store import AppendResult, Buffer, LeaseHeldError

LAYOUT, TODAY = Layout("/raw", "things"), date(2026, 3, 1)
PIECES = list[pa.RecordBatch]


class Files:
    """A double of the window files: it keeps what is appended, and refuses the file at `refused`."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.refused: dict[str, Exception] = {}

    def append(self, path: str, chunks: Iterable[Buffer]) -> AppendResult:
        if path in self.refused:
            raise self.refused[path]
        start = len(self.kept.get(path, b""))
        self.kept[path] = self.kept.get(path, b"") + b"".join(map(bytes, chunks))  # type: ignore[arg-type]
        return AppendResult(start, len(self.kept[path]), True)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    made = Files()
    monkeypatch.setattr(landing, "WindowFiles", lambda address, layout: made)
    return made


def frame_tasks(*tasks: list[dict[str, Any]]) -> PIECES:
    """Return what tasks that read these rows give to one that appends, in order of the windows."""
    batches = [piece for rows in tasks for piece in frame_pieces(iter([make_batch(rows)]), FRAMING)]
    pieces: PIECES = (
        pa.Table.from_batches(batches).sort_by([("window_ms", "ascending"), ("place", "ascending")]).to_batches()
    )
    return pieces


def append(pieces: PIECES) -> Iterator[SimpleNamespace]:
    for batch in Appending("http://hdfs", LAYOUT, TODAY, GROUPING).append(iter(pieces)):
        yield from (SimpleNamespace(**row) for row in batch.to_pylist())


def land(pieces: PIECES) -> Appended:
    return collect_results(append(pieces), GENERATION, TODAY)


def test_windows_and_quarantine_land_with_what_was_sent(files: Files) -> None:
    rows = [record(n, 1 + n % 2, n, kafka_partition=n % 3) for n in range(30)] + [quarantined(31)]
    reads = [ShardRead(0, 0), ShardRead(1, 0)]
    done = land(frame_tasks([*rows[:10], shard_end(reads[0])], [*rows[10:], shard_end(reads[1])]))
    assert done.shards == reads
    assert done.newest_ms == {n: max(row["event_ms"] for row in rows[:30] if row["kafka_partition"] == n)
                              for n in range(3)}  # fmt: skip
    paths = {
        LAYOUT.quarantine_file(TODAY): -1,
        **{LAYOUT.window_file(from_ms(n * HOUR_MS)): n * HOUR_MS for n in (1, 2)},
    }
    assert files.kept.keys() == paths.keys()
    for path, content in files.kept.items():
        own = [row for row in rows if row["window_ms"] == paths[path]]
        assert content[:1] == b"\n"
        assert sorted(content[1:].splitlines(keepends=True)) == sorted(map(encode_row, own))
        (landed,) = (each for each in done.landings if (each.window_start or TODAY) in (from_ms(paths[path]), TODAY)
                     and (each.window_start is None) == (paths[path] == -1))  # fmt: skip
        assert (landed.byte_start, landed.byte_end, landed.proved) == (0, len(content), True)
        expected = [(source, digest) for source, digest, _ in compute_sums(own)]
        assert [(part.source.kafka_partition, part.digest) for part in landed.parts] == expected
    assert done.rows == [b"1970-01-01 0%d:00:00+00\ta\t15\t15" % hour for hour in (1, 2)]


def test_second_append_lands_behind_the_first(files: Files) -> None:
    first, second = (land(frame_tasks([record(n, 1)])).landings[0] for n in (0, 1))
    assert second.byte_start == first.byte_end
    assert sum_digests([first.digest, second.digest]).records == 2


def test_piece_that_changed_on_its_way_fails_the_append(files: Files) -> None:
    (batch,) = frame_tasks([record(0, 1)])
    damaged = batch.column("text").view(pa.binary())[0].as_py().replace(b"v\\t0", b"v\\t1")
    batch = batch.set_column(2, "text", pa.array([damaged], pa.binary()))
    with pytest.raises(AppendFailedError, match="lines changed on their way"):
        land([batch])


def test_first_append_that_fails_is_the_last(files: Files) -> None:
    held = LAYOUT.window_file(from_ms(HOUR_MS))
    files.refused[held] = LeaseHeldError(held, "a dead writer")
    pieces = frame_tasks([record(0, 0), record(1, 1), record(2, 2)])
    with pytest.raises(AppendFailedError, match="still open for a writer") as failed:
        land(pieces)
    assert failed.value.held_paths == (held,)
    assert list(files.kept) == [LAYOUT.window_file(from_ms(0))]
    files.refused[held] = UnreachableError("HDFS does not answer")
    with pytest.raises(AppendFailedError, match="HDFS does not answer") as unreachable:
        land(pieces)
    assert unreachable.value.held_paths == ()
