"""Failures planted in a pipeline, and reads of the ledger that show them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]
from tests.integration.events import moment
from tests.integration.lane import Lane
from tests.raw_lines import change_record, encode_append

from onceover.config.endpoints import address
from onceover.detection import holes
from onceover.errors import TransientError
from onceover.ingest.driver import Ingest
from onceover.ledger.database import connect, upgrade_schema
from onceover.model.window import WindowRange
from onceover_local.stack.process import wait_for


def minutes(start: float, end: float) -> WindowRange:
    return WindowRange(moment(start), moment(end))


def replay(lane: Lane) -> None:
    """Land one batch twice: its driver cannot commit the offsets, so the next driver reads it again."""
    with lane.driver() as driver:
        land_without_commit(driver)
    lane.turn()


def land_without_commit(driver: Ingest) -> None:
    """Run a turn whose offsets the store never gets, for it does not answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver._offsets, "commit", fail)
        with pytest.raises(TransientError):
            driver.turn()


def land_twice(lane: Lane, values: Iterable[bytes], kafka_partition: int = 0) -> None:
    lane.produce(values, kafka_partition)
    replay(lane)
    lane.ingest()


def fail(*_: object) -> Any:
    raise TransientError("the group's coordinator is away")


def append(lane: Lane, minute: int, content: bytes) -> None:
    """Append to the file of the window at that minute, without a landing."""
    lane.store().append(lane.window_file(minute), [content])


def copy_line(lane: Lane, offset: int) -> bytes:
    """Return the line of that offset as raw holds it, framed."""
    (held,) = {x for _, x in lane.lines() if x.record.offset == offset}
    return encode_append(held)


def encode_line(lane: Lane, offset: int, value: bytes) -> bytes:
    """Return an intact line with that offset's ID and another value, framed."""
    original = next(x for _, x in lane.lines() if x.record.offset == offset)
    at = int(value.split(b'"at": ')[1].split(b",")[0])
    return encode_append(replace(change_record(original, key=None, headers=(), value=value), event_ms=at))


def skip_to(lane: Lane, offset: int, kafka_partition: int = 0) -> None:
    """Set the offset store ahead, so that the offsets before are never read."""
    with lane.driver() as driver:
        driver._offsets.store.save({kafka_partition: offset}, "")


def list_gaps(lane: Lane) -> list[tuple[int, int, str]]:
    with lane.open() as context:
        return [(g.offsets.start, g.offsets.end, str(g.reason)) for g in holes.probe_holes(context)]


def read_end(lane: Lane) -> int:
    """Return where the log of Kafka partition 0 ends, markers included."""
    with lane.open() as context, context.open_own_topic() as topic:
        return topic.facts().end[0]


def produce_transaction(lane: Lane, values: Iterable[bytes], *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": address("kafka"), "transactional.id": f"{lane.name}-{commit}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(lane.topic, value, partition=0)
    producer.flush(30)
    producer.commit_transaction(30) if commit else producer.abort_transaction(30)


def lose_ledger() -> None:
    """Delete the ledger, as if its database were lost; the aggregates survive."""
    with connect(address("postgres"), "test") as ledger:
        ledger.execute("DROP SCHEMA onceover CASCADE")
    upgrade_schema(address("postgres"))


def delete_window(lane: Lane, minute: int) -> None:
    lane.store().remove(lane.window_file(minute))


def expire(lane: Lane, below: int, kafka_partition: int = 0) -> None:
    """Delete the log below that offset, as Kafka's retention does."""
    admin = AdminClient({"bootstrap.servers": address("kafka")})  # kept, because its futures end with it
    for future in admin.delete_records([TopicPartition(lane.topic, kafka_partition, below)]).values():
        future.result(30)


def create_topic(name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[name].result(30)


def delete_topic(lane: Lane) -> None:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    admin.delete_topics([lane.topic])[lane.topic].result(30)


def recreate(lane: Lane, partitions: int = 1) -> None:
    delete_topic(lane)
    create_topic(lane.topic, partitions)


def add_partitions(lane: Lane, total: int) -> None:
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    admin.create_partitions([NewPartitions(lane.topic, total)])[lane.topic].result(30)


def backdate(lane: Lane) -> None:
    """Set every landing back by 40 days."""
    lane.query("UPDATE onceover.batch SET landed_at = landed_at - interval '40 days' WHERE pipeline = %s", [lane.name])


def wait_for_lease_end(lane: Lane) -> None:
    """Wait until the lease of a killed driver has expired."""
    alive = (
        "SELECT expires_at >= clock_timestamp() AS alive FROM onceover.driver "
        "WHERE pipeline = %s AND superseded_at IS NULL"
    )
    with lane.ledger() as ledger:
        wait_for(lambda: not (ledger.execute(alive, [lane.name]).fetchone() or {}).get("alive"), 30, "a lease to end")


def read_certificates(lane: Lane) -> Mapping[Any, tuple[Any, ...]]:
    """Return the certificate's digest and the aggregates of each window."""
    rows = lane.query(
        """
        SELECT w.window_start, c.records, c.high1, c.low1, c.high2, c.low2, c.aggregate_rows, c.aggregate_hash
        FROM onceover."window" w JOIN onceover.certificate c USING (certificate_id)
        WHERE w.pipeline = %s AND c.version = w.version
        """,
        [lane.name],
    )
    return {row["window_start"]: tuple(row.values())[1:] for row in rows}


def count_certified(lane: Lane) -> int:
    return len(read_certificates(lane))


def spoil(lane: Lane, path: str) -> None:
    """Overwrite the file's block on every DataNode's disk, behind HDFS's back."""
    with lane.hdfs().read(path) as reader:
        content = reader.read()
    blocks = [
        block
        for block in (Path(os.environ["ONCEOVER_LOCAL"]) / "hdfs").rglob("blk_*")
        if block.suffix != ".meta" and block.read_bytes() == content
    ]
    assert blocks, f"no block of {path} was found"
    for block in blocks:
        block.write_bytes(b"?" * len(content))
