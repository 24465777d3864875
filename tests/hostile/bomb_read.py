"""The product's search for what no reader gets, and its careful read where there is nothing of the kind, in a process
whose children are its readers only, so that their memory can be measured: all of it as JSON."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from onceover.kafka.guarded_read import read_guarded
from onceover.kafka.reader import KafkaSource
from onceover.kafka.topic import derive_generation
from onceover.kafka.unreadable_search import find_unreadable
from onceover.model.offsets import KafkaPartition, OffsetRange


def read(source: KafkaSource, end: int) -> dict[str, Any]:
    """Read Kafka partition 0 up to the end of its log."""
    kafka_partition = KafkaPartition(derive_generation(source.topic_id), 0)
    stopped = find_unreadable(source, OffsetRange(kafka_partition, 0, end), end)
    batches = [] if stopped else read_guarded(source, 0, 0, end)
    offsets = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    return {"unreadable": stopped and [stopped.offsets.start, stopped.offsets.end], "why": stopped and stopped.why,
            "read": offsets, "mebibytes": peak}  # fmt: skip


if __name__ == "__main__":
    bootstrap, topic, topic_id, end = sys.argv[1:]
    source = KafkaSource(bootstrap, topic, topic_id, stall_seconds=120, one_batch_a_fetch=True)
    print(json.dumps(read(source, int(end))))  # noqa: T201
