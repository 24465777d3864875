"""Windows that are certified, compacted and expired, and reads of their certificates and files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import backdate, replay

from onceover.ledger import expiries
from onceover.ledger.drivers import as_driver
from onceover.ledger.windows import list_windows
from onceover.model.raw_file import COMPACTED
from onceover.retention.removal import carry_out

EACH = 300
HEADERS: list[tuple[str, bytes | None]] = [("h", b"\xff\n"), ("h", None)]


def make_certified_lane(lanes: Lanes) -> Lane:
    """Make a lane with two windows, certified from raw with each record twice in it, landed 40 days ago."""
    made = lanes(partitions=2)
    for kafka_partition in (0, 1):
        values = [event(n * 10 / EACH, "ab"[n % 2], n) for n in range(EACH)]
        made.produce(values, kafka_partition, key=b"k\t\\N", headers=HEADERS)
    replay(made)
    made.ingest()
    assert len(made.repair_detected().confirmed) == 2
    backdate(made)
    return made


def read_compacted(lane: Lane) -> dict[str, bytes]:
    return {name: content for name, content in lane.raw().items() if name.endswith(COMPACTED)}


def decompress(content: bytes) -> bytes:
    """Return the text of a compacted file, as any zstd tool does: without a look at its table."""
    return bytes(pa.input_stream(io.BytesIO(content), compression="zstd").read())


def expire_text(lane: Lane) -> int:
    """Expire all text, as retention does within a day; return how many windows expired."""
    backdate(lane)
    with lane.ledger() as ledger:
        due = expiries.list_expirable(ledger, lane.name, 86_400_000)
        expired = expiries.mark_expired(ledger, lane.name, due, "test", "a test")
        carry_out_all(lane)
        ledger.execute("UPDATE onceover.expiry SET moved_at = moved_at - interval '2 days'")
    carry_out_all(lane)
    return expired


def carry_out_all(lane: Lane) -> int:
    """Move or delete the files of what was decided to expire, as drivers do; return how many."""
    with lane.ledger() as ledger, as_driver(ledger, lane.name, "test") as epoch:
        return carry_out(ledger, epoch, lane.files())


def expire_window(lane: Lane, start: datetime) -> bool:
    """Expire one window's text, as retention does; return whether a compacted file replaces it."""
    with lane.ledger() as ledger:
        (due,) = (each for each in expiries.list_expirable(ledger, lane.name, 0) if each.window_start == start)
        assert expiries.mark_expired(ledger, lane.name, [due], "test", "a test") == 1
    assert carry_out_all(lane) == 1
    return due.compacted


def list_states(lane: Lane) -> list[object]:
    with lane.ledger() as ledger:
        return [row["state"] for row in list_windows(ledger, lane.name)]


def read_certificate(lane: Lane, start: datetime) -> Mapping[str, Any]:
    (row,) = lane.query(
        "SELECT c.basis, c.records, c.high1, c.low1, c.high2, c.low2, c.aggregate_rows, c.aggregate_hash "
        'FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id) '
        "WHERE w.pipeline = %s AND w.window_start = %s AND c.version = w.version",
        [lane.name, start],
    )
    return row


def spoil_rows(lane: Lane) -> None:
    lane.query(f"UPDATE aggregates.{lane.name} SET events = events + 1")  # a name of the test's own making
