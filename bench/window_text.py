"""Window files of raw on HDFS as ingest leaves them, with the claims of a repair that reads all of them.

A window's records come in two batches from four Kafka partitions. A driver that starts again replays the first records
of each: these lines are in the file twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hdfs import InsecureClient

from onceover.lines.contract_names import name_contracts
from onceover.lines.frame import Framed, add_value, frame_content, join_head
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.contract import Contract, Contracts, Key
from onceover.model.digest import Digest
from onceover.model.measures import Measure
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import to_ms
from onceover.raw.frozen_file import FrozenText

GENERATION: Final = "00c0ffee"
PARTITIONS: Final = 4
MINUTES: Final = 5
SHOPS: Final = 40
FIRST: Final = datetime(2026, 3, 1, tzinfo=UTC)
CONTRACT: Final = Contract(
    topic="sales",
    window_minutes=MINUTES,
    format="json",
    schema="at BIGINT, shop STRING, item BIGINT, cents BIGINT",
    required=("at",),
    event_time="value.at",
    tombstone="quarantine",
    keys=(Key("shop", "value.shop"),),
    measures=(
        Measure("sales", "count", "*"),
        Measure("cents", "sum", "value.cents"),
        Measure("largest", "max", "value.cents"),
    ),
    horizon_ms=None,
    skew_ms=None,
)
_COLUMNS = ("k_shop", "m_sales", "m_cents", "m_largest")
_WRITERS = 4
_APPENDED = 50_000  # records of a Kafka partition


@dataclass(slots=True)
class WindowText:
    """Files that were written: the text of each window and its claim, by the window's start."""

    files: dict[datetime, FrozenText] = field(default_factory=dict)
    claimed: list[ClaimedWindow] = field(default_factory=list)
    lines: int = 0
    records: int = 0

    @property
    def bytes(self) -> int:
        return sum(text.length for text in self.files.values())

    @property
    def accounted(self) -> list[OffsetRange]:
        """Return the offsets that landed anywhere."""
        each = self.records // PARTITIONS
        return [OffsetRange(KafkaPartition(GENERATION, partition), 0, each) for partition in range(PARTITIONS)]


def write_windows(client: InsecureClient, folder: str, lines: int, windows: int) -> WindowText:
    """Write about so many lines of 200 bytes, 5 % of them duplicates, into as many windows one after the other."""
    each = round(0.95 * lines / windows / PARTITIONS / 2) * 2  # records of a window and Kafka partition
    repeated = round(0.05 * lines / windows / PARTITIONS)
    written = WindowText()
    jobs: list[Future[object]] = []
    with ThreadPoolExecutor(_WRITERS) as pool:
        for number in range(windows):
            start = FIRST + number * timedelta(minutes=MINUTES)
            path = f"{folder}/{start:%Y%m%d-%H%M}.log"
            text = bytearray()
            landings: list[ClaimedLanding] = []
            for first, after in ((0, each // 2), (each // 2, each), (0, repeated)):
                offsets = range(number * each + first, number * each + after)
                appended, landing = _append(3 * number + len(landings), start, offsets)
                text += b"\n" + appended
                landings.append(landing)
            end, token = start + timedelta(minutes=MINUTES), UUID(int=1)
            written.claimed.append(ClaimedWindow(1, start, end, token, 1, tuple(landings), None))
            written.files[start] = FrozenText(path, len(text))
            written.lines += PARTITIONS * (each + repeated)
            written.records += PARTITIONS * each
            jobs.append(pool.submit(client.write, path, data=bytes(text), overwrite=True))
            if number >= 2 * _WRITERS:
                jobs[number - 2 * _WRITERS].result()
        for job in jobs:
            job.result()
    return written


def write_large_window(client: InsecureClient, path: str, appends: int) -> WindowText:
    """Write one window of so many appends of 40 MB and 200,000 lines, every 20th of them twice, an append at a time."""
    landings: list[ClaimedLanding] = []
    written, length = WindowText(), 0

    def yield_text() -> Iterator[bytes]:
        nonlocal length
        for number in range(appends):
            text, landing = _append(number, FIRST, range(number * _APPENDED, (number + 1) * _APPENDED))
            landings.append(landing)
            for _ in range(1 if number % 20 else 2):
                length += 1 + len(text)
                yield b"\n" + text

    client.write(path, data=yield_text(), overwrite=True)
    end = FIRST + timedelta(minutes=MINUTES)
    written.claimed.append(ClaimedWindow(1, FIRST, end, UUID(int=1), 1, tuple(landings), None))
    written.files[FIRST] = FrozenText(path, length)
    written.records = PARTITIONS * _APPENDED * appends
    written.lines = written.records + PARTITIONS * _APPENDED * -(-appends // 20)
    return written


def _append(landing_id: int, start: datetime, offsets: range) -> tuple[bytes, ClaimedLanding]:
    texts, parts = [], []
    for partition, framed in _frame_each(start, offsets):
        texts.append(bytes(framed.text))
        digest = Digest(len(framed.parts), *map(int, framed.parts.sum(axis=0)))
        parts.append((OffsetRange(KafkaPartition(GENERATION, partition), offsets.start, offsets.stop), digest))
    return b"".join(texts), ClaimedLanding(landing_id, tuple(parts))


def _frame_each(start: datetime, offsets: range) -> Iterator[tuple[int, Framed]]:
    (name, _) = name_contracts(Contracts((CONTRACT,)))
    offset = np.arange(offsets.start, offsets.stop)
    for partition in range(PARTITIONS):
        number = offset * PARTITIONS + partition
        mixed = (number * 2_654_435_761) % 4_294_967_291
        at = to_ms(start) + number % (MINUTES * 60_000)
        shop, item, cents = 100 + mixed % SHOPS, 1000 + mixed % 9000, mixed % 1_000_000
        shops = pc.binary_join_element_wise("shop-", _write(shop), "")
        value = pc.binary_join_element_wise(
            '{"at":', _write(at), ',"shop":"', shops, '","item":', _write(item), ',"cents":', _write(cents), "}", ""
        )
        batch = pa.record_batch(
            {
                "kafka_partition": pa.array(np.full(len(offset), partition)),
                "offset": pa.array(offset),
                "kafka_timestamp": pa.array(at + 1000),
                "event_ms": pa.array(at),
                "leader_epoch": pa.nulls(len(offset), pa.int32()),
                "key": _write(item).cast(pa.binary()),
                "headers": pa.nulls(len(offset), pa.binary()),
                "value": value.cast(pa.binary()),
                "k_shop": shops,
                "m_sales": _write(np.ones(len(offset), np.int64)),
                "m_cents": _write(cents),
                "m_largest": _write(cents),
            }
        )
        content = add_value(join_head(batch, GENERATION), batch["value"])
        columns = [batch[each] for each in _COLUMNS]
        yield partition, frame_content(content, batch["event_ms"], batch["leader_epoch"], name.decode(), columns)


def _write(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers).cast(pa.string())
