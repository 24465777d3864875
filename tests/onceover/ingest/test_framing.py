"""Records become pieces: the lines that the one-record reference writes, with sums and groups of the same records."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.onceover.ingest.framed import (
    FRAMING,
    GROUPING,
    HOUR_MS,
    compute_sums,
    encode_row,
    make_batch,
    quarantined,
    read_sums,
    record,
    shard_end,
)

from onceover.errors import BatchTooLargeError
from onceover.ingest import framing
from onceover.ingest.framing import QUARANTINE, SHARD_END, Framing, frame_pieces, hash_text
from onceover.kafka.shard_read import ShardRead


def frame_all(batches: Sequence[Sequence[Any]], how: Framing = FRAMING) -> list[dict[str, Any]]:
    made = frame_pieces(iter([make_batch(rows) for rows in batches]), how)
    as_bytes = (batch.set_column(2, "text", batch.column("text").view(pa.binary())) for batch in made)
    return [piece for batch in as_bytes for piece in batch.to_pylist()]


def read_groups(pieces: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the groups of all pieces, joined."""
    tables = [pa.ipc.open_stream(piece["rows"]).read_all() for piece in pieces if piece["rows"] is not None]
    return sorted((tuple(row.values()) for row in GROUPING.group(pa.concat_tables(tables)).to_pylist()), key=str)


def test_pieces_hold_the_lines_sums_and_groups_of_their_window() -> None:
    drawn = random.Random(1)
    rows = [
        record(n, drawn.randrange(4), drawn.randrange(60), drawn.randrange(3), drawn.choice(["a", "b\t", None]), n)
        for n in range(300)
    ]
    drawn.shuffle(rows)
    pieces = frame_all([rows[:100], rows[100:101], [], rows[101:]])
    assert [piece["window_ms"] for piece in pieces] == [hour * HOUR_MS for hour in range(4)]
    for hour, piece in enumerate(pieces):
        own = [row for row in rows if row["window_ms"] == hour * HOUR_MS]
        assert sorted(piece["text"].splitlines(keepends=True)) == sorted(map(encode_row, own))
        assert piece["hash"] == hash_text(piece["text"])
        merged: dict[int, Any] = {}
        for source, digest, newest in read_sums(piece["sums"]):
            earlier = merged.get(source)
            merged[source] = (digest, newest) if earlier is None else (earlier[0] + digest, max(earlier[1], newest))
        assert [(source, *merged[source]) for source in sorted(merged)] == compute_sums(own)
        groups = [
            (piece["window_ms"], kind, len(found), sum(row["m_amount"] for row in found))
            for kind in ("a", "b\t", None)
            if (found := [row for row in own if row["k_kind"] == kind])
        ]
        assert read_groups([piece]) == sorted(groups, key=str)


def test_records_without_a_window_are_lines_with_their_reason() -> None:
    rows = [record(0, 1), quarantined(1), record(2, 1), quarantined(3, "missing field at")]
    without, within = frame_all([rows])
    assert (without["window_ms"], within["window_ms"]) == (QUARANTINE, HOUR_MS)
    assert without["text"] == encode_row(rows[1]) + encode_row(rows[3])
    assert read_sums(without["sums"]) == compute_sums([rows[1], rows[3]])
    assert without["rows"] is None
    assert within["text"] == encode_row(rows[0]) + encode_row(rows[2])


def test_ends_of_shards_pass_and_are_no_lines() -> None:
    read = ShardRead(2, 17)
    end, piece = frame_all([[record(0, 1), shard_end(read)], [shard_end(read)]])[0::2]
    assert (end["window_ms"], end["text"], end["sums"]) == (SHARD_END, read.as_bytes(), None)
    assert piece["text"] == encode_row(record(0, 1))
    assert frame_all([[shard_end(read)]])[0]["hash"] == hash_text(read.as_bytes())
    assert frame_all([]) == frame_all([[]]) == []


def test_much_text_goes_on_in_several_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "_PIECES_BYTES", 1000)
    rows = [record(n, n % 2) for n in range(200)]
    pieces = frame_all([rows[n : n + 5] for n in range(0, 200, 5)])
    assert len(pieces) > 20
    assert sorted(b"".join(piece["text"] for piece in pieces).splitlines(keepends=True)) == sorted(
        map(encode_row, rows)
    )
    assert read_groups(pieces) == [(0, "a", 100, 100), (HOUR_MS, "a", 100, 100)]


def test_long_text_is_several_pieces_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "_LONGEST_PIECE", 100)
    rows = [record(n, 1 + n % 2) for n in range(30)]
    pieces = frame_all([rows])
    assert [piece["place"] for piece in pieces] == list(range(len(pieces)))
    for window_ms in (HOUR_MS, 2 * HOUR_MS):
        own = [piece for piece in pieces if piece["window_ms"] == window_ms]
        assert b"".join(piece["text"] for piece in own) == b"".join(
            encode_row(row) for row in rows if row["window_ms"] == window_ms
        )
        assert [len(piece["text"]) for piece in own[:-1]] == [100] * (len(own) - 1)
        assert [piece["sums"] is None for piece in own] == [piece["rows"] is None for piece in own]
        assert [piece["sums"] is None for piece in own] == [False] + [True] * (len(own) - 1)


@pytest.mark.parametrize("limit", [framing._PIECES_BYTES, 1])
def test_too_many_windows_or_groups_are_refused(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(framing, "_PIECES_BYTES", limit)
    batches = [[record(n, n)] for n in range(4)]
    assert len(frame_all(batches, replace(FRAMING, most_windows=4))) == 4
    with pytest.raises(BatchTooLargeError, match=r"has 4 windows .*of at most 3"):
        frame_all(batches, replace(FRAMING, most_windows=3))
    assert frame_all([[record(0, 1)]], replace(FRAMING, most_windows=0)), "one record is never too large"
    monkeypatch.setattr(framing, "MAX_ROW_BYTES", 100)
    kinds = [[record(n, 1, kind=f"kind {n}") for n in range(4)]]
    with pytest.raises(BatchTooLargeError, match="lower max_records_per_batch"):
        frame_all(kinds)
