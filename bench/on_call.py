"""One wrong window from the command to its certificate, as a person on call waits for it.

Beside the script that one would write: it reads the window's file, drops duplicates by ID, and replaces the window's
rows. Both are processes that start Spark; the servers are up. The rows of both are compared after every run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.on_call_peer import TABLE
from bench.table import Row, alternate, middle, results, runs
from bench.window_text import MINUTES
from onceover.config.endpoints import address
from onceover.ledger.database import Connection, connect
from onceover.model.window import to_ms

NAME = "bench_on_call"
RECORDS = 400
GOAL = 1.0
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
END = START + timedelta(minutes=MINUTES)
_CLI = (str(Path(sys.executable).with_name("onceover")),)
_LANDED_WITHIN_S = 120
_TOML = f"""
[contract]
topic = "{NAME}"
window_minutes = {MINUTES}
format = "json"
schema = "at BIGINT, shop STRING, cents BIGINT"
required = ["at"]
event_time = "value.at"
tombstone = "quarantine"
[contract.keys]
shop = "value.shop"
[contract.measures]
sales = {{ count = "*" }}
cents = {{ sum = "value.cents" }}
largest = {{ max = "value.cents" }}
[contract.bounds]
horizon = "none"
skew = "none"
[ingest]
allowed_lateness = "0s"
idle_after = "1s"
interval = "1s"
max_records_per_batch = 10_000
rate_control = "none"
share = "fair"
sharding = "backlog"
offset_store = "postgres"
isolation = "read_committed"
first_start = "earliest"
[storage]
raw_root = "/bench/on_call"
retention = "none"
[repair]
max_tries = 3
deadline = "none"
"""
_Rows = list[tuple[str, int, int, int]]


def run() -> tuple[list[Row], list[str]]:
    """Return rows for `bench.table.show`, and notes to print below them."""
    folder = results() / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.toml").write_text(_TOML)
    os.environ["ONCEOVER_PIPELINES"] = str(folder)
    expected = _produce()
    file = f"{address('hdfs')}/bench/on_call/{NAME}/{START:%Y-%m-%d}/{START:%H%M}.log"
    span = ("--from", f"{START:%Y-%m-%dT%H:%MZ}", "--to", f"{END:%Y-%m-%dT%H:%MZ}")
    correct: list[bool] = []
    with connect(address("postgres"), "bench") as connection:
        connection.execute(f"CREATE TABLE {TABLE} (start timestamptz, shop text, sales int, cents int, largest int)")
        _ingest(connection)

        def repair() -> float:
            connection.execute(f"UPDATE aggregates.{NAME} SET sales = sales + 1 WHERE window_start = %s", [START])
            took = _time([*_CLI, "repair", NAME, *span, "--force", "--reason", "bench"])
            asked = subprocess.run([*_CLI, "windows", NAME, *span, "--json"], check=True, stdout=subprocess.PIPE)
            (window,) = json.loads(asked.stdout)
            correct.append(window["state"] == "certified" and _read(connection, f"aggregates.{NAME}") == expected)
            return took

        def replace() -> float:
            took = _time([sys.executable, "-m", "bench.on_call_peer", file, f"{START:%Y-%m-%d %H:%M:%S+00}"])
            correct.append(_read(connection, TABLE) == expected)
            return took

        ours, peer = map(middle, alternate(repair, replace, runs()))
    row = Row(
        f"one window of {RECORDS} records, from the command on", ours, peer, "a script with naive Spark", "s",
        ours / peer, f"<= {GOAL:g}", ours <= GOAL * peer, all(correct), runs(),
    )  # fmt: skip
    return [row], []


def _time(command: Sequence[str]) -> float:
    started = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[1])
    return time.monotonic() - started


def _read(connection: Connection, table: str) -> _Rows:
    column = "start" if table == TABLE else "window_start"
    rows = connection.execute(
        f"SELECT shop, sales, cents, largest FROM {table} WHERE {column} = %s ORDER BY shop", [START]
    )
    return [(row["shop"], row["sales"], row["cents"], row["largest"]) for row in rows]


def _produce() -> _Rows:
    """Produce the window's records and one of a later window, which closes it. Return its rows."""
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    admin.create_topics([NewTopic(NAME, num_partitions=1, config={"retention.ms": "-1"})])[NAME].result(30)
    producer = Producer({"bootstrap.servers": address("kafka")})
    sales: dict[str, list[int]] = {}
    for n in range(RECORDS):
        shop, cents = f"shop-{n % 7}", n * 37 % 1000
        sales.setdefault(shop, []).append(cents)
        producer.produce(NAME, json.dumps({"at": to_ms(START) + n, "shop": shop, "cents": cents}))
    producer.produce(NAME, json.dumps({"at": to_ms(END) + 1, "shop": "later", "cents": 1}))
    if producer.flush(60):
        raise RuntimeError("the broker did not take all records")
    return sorted((shop, len(each), sum(each), max(each)) for shop, each in sales.items())


def _ingest(connection: Connection) -> None:
    """Run ingest until all records have landed and the window is closed."""
    process = subprocess.Popen([*_CLI, "ingest", NAME], stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[1])
    deadline = time.monotonic() + _LANDED_WITHIN_S
    try:
        while not _is_closed(connection):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"ingest landed not all records: exit code {process.poll()}")
            time.sleep(0.2)
    finally:
        process.terminate()
        process.wait()


def _is_closed(connection: Connection) -> bool:
    row = connection.execute(
        "SELECT watermark >= %s AS is_closed FROM onceover.pipeline WHERE name = %s", [END, NAME]
    ).fetchone()
    return bool(row and row["is_closed"])
