"""A Structured Streaming query's checkpoint, taken over from a real query and given back to it."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes
from tests.integration.planted_failures import list_gaps
from tests.programs import run_python

from onceover.config.endpoints import address
from onceover.offset_stores import open_store
from onceover.raw.hdfs import SmallFiles
from onceover_local.stack.jars import fetch_class_path

pytestmark = [pytest.mark.stack, pytest.mark.rare]
# Reads the whole topic, prints the offsets of each record it was given, and ends.
QUERY = """
import json, sys
from pyspark.sql import SparkSession
bootstrap, topic, checkpoint, jars = sys.argv[1:]
spark = (SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
         .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1").getOrCreate())
seen = []
query = (spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
         .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 4).load().writeStream
         .foreachBatch(lambda batch, number: seen.extend(row.offset for row in batch.select("offset").collect()))
         .option("checkpointLocation", checkpoint).trigger(availableNow=True).start())
query.awaitTermination()
print(json.dumps(sorted(seen)))
"""


def run_query(lane: Lane, folder: str) -> list[int]:
    """Return the offsets that one run of the query was given."""
    jars = fetch_class_path("spark-kafka", lambda part, what: None).replace(":", ",")
    arguments = [address("kafka"), lane.topic, f"{address('hdfs')}{folder}", jars]
    found: list[int] = json.loads(run_python("-c", QUERY, *arguments).strip().splitlines()[-1])
    return found


def test_checkpoint_query_resumes_where_ingest_stopped(over: Lanes) -> None:
    lane = over("checkpoint")
    folder = f"/checkpoints/{lane.name}"
    lane.produce([event(n) for n in range(10)])
    assert run_query(lane, folder) == list(range(10))

    small = SmallFiles(address("webhdfs"))
    last = max(int(name) for name in small.names(f"{folder}/offsets") if name.isdigit())
    planned = small.read(f"{folder}/offsets/{last}") or b""
    small.create(f"{folder}/offsets/{last + 1}", planned)  # what a query leaves that is killed within a batch
    lane.produce([event(n) for n in range(10, 15)])
    assert sum(p.records for p in lane.ingest()) == 5, "what the query had read is not read again"
    assert sorted(x.record.offset for _, x in lane.lines()) == list(range(10, 15))
    with lane.open() as context, closing(open_store("checkpoint", context)) as store:
        assert store.load([0]).offsets == {0: 15}

    lane.produce([event(n) for n in range(15, 21)])
    assert run_query(lane, folder) == list(range(15, 21)), "and the query does not read ours"
    lane.produce([event(21)])
    with lane.driver() as driver:
        assert driver.turn().records == 1
    assert list_gaps(lane) == [(15, 21, "lost")], "what another read in between is never taken for read by us"
