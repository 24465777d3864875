"""The window files behind a large ledger, line for line, on HDFS; and the verdict of a scan of all lines."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
from hdfs import InsecureClient

from bench.large_ledger import BEFORE, LINE, MINUTES, OWN, PARTITIONS, LargeLedger, generation, start_of
from onceover.ledger.database import Connection
from onceover.lines.line_format import Line, encode
from onceover.model.offsets import KafkaPartition
from onceover.model.record import Record
from onceover.model.window import from_ms, to_ms
from onceover.raw.layout import Layout

_THREADS = 8
_CONTRACT = "V1-00c0ffee00c0ffee"
_BATCH = OWN + BEFORE  # offsets of a batch in each Kafka partition


def write(client: InsecureClient, layout: Layout, ledger: LargeLedger) -> int:
    """Write every window's file as ingest would have left it, with the planted failures. Returns how many lines."""

    def one(window: int) -> int:
        content = _content(ledger, window)
        if content is None:
            return 0
        client.write(layout.window_file(start_of(window)), data=content, overwrite=True)
        return len(content) // LINE

    with ThreadPoolExecutor(_THREADS) as pool:
        return sum(pool.map(one, range(ledger.windows)))


def fetch(client: InsecureClient, layout: Layout, folder: Path) -> None:
    """Copy every window file from HDFS to a local folder of the same shape."""
    shutil.rmtree(folder, ignore_errors=True)
    root = f"{layout.raw_root}/{layout.pipeline}"

    def one(path: str) -> None:
        with client.read(path) as reader:
            target = folder / path.removeprefix(f"{root}/")
            target.write_bytes(reader.read())

    paths = []
    for day in client.list(root):
        (folder / day).mkdir(parents=True)
        paths += [f"{root}/{day}/{name}" for name in client.list(f"{root}/{day}")]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(one, paths))


def scan(connection: Connection, ledger: LargeLedger, folder: Path) -> dict[datetime, str]:
    """Read all lines and judge each wrong window: `surplus` if an ID is repeated or there are more lines than the
    aggregates count, `missing` if there are fewer, `misplaced` if a line is of another window."""
    rows = connection.execute(
        'SELECT window_start, records FROM onceover."window" WHERE pipeline = %s', [ledger.known.name]
    ).fetchall()
    counted = pa.table({"start_ms": [to_ms(r["window_start"]) for r in rows], "counted": [r["records"] for r in rows]})
    with duckdb.connect() as duck:
        duck.execute("SET threads = 2")
        duck.register("counted", counted)
        verdicts = duck.execute(
            rf"""
            WITH lines AS (
              SELECT substr(line, 1, 34) AS id, split_part(line, chr(9), 5)::BIGINT AS event_ms,
                epoch_ms(strptime(filename[-19:-5], '%Y-%m-%d/%H%M')) AS start_ms
              FROM read_csv('{folder}/*/*.log', columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false,
                delim = '\x01', quote = '', escape = '', filename = true)
              WHERE line IS NOT NULL AND line <> ''
            ), windows AS (
              SELECT start_ms, count(*) AS lines, count(DISTINCT id) AS ids,
                count(*) FILTER (WHERE event_ms < start_ms OR event_ms >= start_ms + {MINUTES * 60_000}) AS misplaced
              FROM lines GROUP BY start_ms)
            SELECT start_ms, CASE
              WHEN misplaced > 0 THEN 'misplaced'
              WHEN lines > ids OR lines > counted THEN 'surplus'
              WHEN coalesce(lines, 0) < counted THEN 'missing' END AS verdict
            FROM counted LEFT JOIN windows USING (start_ms) WHERE verdict IS NOT NULL
            """
        ).fetchall()
    return {from_ms(start_ms): verdict for start_ms, verdict in verdicts}


def _content(ledger: LargeLedger, window: int) -> bytes | None:
    name, start = ledger.known.name, start_of(window)
    own = range(window * MINUTES, (window + 1) * MINUTES)  # batches, from 0
    appends = [_frame(name, start, batch * _BATCH, OWN) for batch in own]
    if window < ledger.windows - 1:
        appends += [_frame(name, start, (batch + MINUTES) * _BATCH + OWN, BEFORE) for batch in own]
    match ledger.planted.get(start):
        case "gone":
            return None
        case "shorter":
            return b"".join(appends)[:-LINE]
        case "duplicated" | "duplicated since":
            appends.append(appends[0])
        case "unaccounted bytes":  # a failed attempt that was cut off after a line
            appends.append(appends[0][: 1 + LINE])
        case "late":
            appends.append(_frame(name, start, 10**12 + window * _BATCH, OWN))
        case _:
            pass
    return b"".join(appends)


def _frame(name: str, start: datetime, first: int, records: int) -> bytes:
    """Frame one append: that many records of each Kafka partition."""
    return b"\n" + b"".join(encode(line) + b"\n" for line in _lines(name, start, first, records))


def _lines(name: str, start: datetime, first: int, records: int) -> Iterator[Line]:
    moment = to_ms(start)
    for number in range(PARTITIONS):
        source = KafkaPartition(generation(name), number)
        for offset in range(first, first + records):
            value = b"%017d" % (offset * PARTITIONS + number)
            at = moment + offset % (MINUTES * 60_000)
            yield Line(Record(source, offset, at, b"a", (), value), at, _CONTRACT, (b"1",))
