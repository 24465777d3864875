"""What a reader delivered of one shard, in its own words: a proof that does not come from what was appended.

The words travel as one record more, of the offset END_OFFSET, which no record of Kafka has, as its head.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from onceover.lines.digest_sums import count_all
from onceover.lines.frame import add_value, hash_content
from onceover.model.digest import EMPTY, Digest
from onceover.model.log_history import NO_EPOCH

END_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class ShardRead:
    """The records of the shard of a Kafka partition that begins at offset `start`, as they were read.

    `oldest_ms` is their smallest Kafka timestamp that is not negative; `epochs` are the first and the last offset of
    each leader epoch, of NO_EPOCH for records without one.
    """

    kafka_partition: int
    start: int
    digest: Digest = EMPTY
    oldest_ms: int | None = None
    epochs: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def __add__(self, later: ShardRead) -> ShardRead:
        """Return what both read, of one Kafka partition."""
        moments = [each.oldest_ms for each in (self, later) if each.oldest_ms is not None]
        epochs = dict(self.epochs)
        for epoch, (first, last) in later.epochs.items():
            low, high = epochs.get(epoch, (first, last))
            epochs[epoch] = min(low, first), max(high, last)
        oldest = min(moments, default=None)
        return ShardRead(self.kafka_partition, self.start, self.digest + later.digest, oldest, epochs)

    def add(self, records: pa.RecordBatch, head: pa.Array) -> ShardRead:
        """Return this read with these records, at least one, in the reader's columns, and their lines' `head`."""
        content = add_value(head, records.column("value"))
        digest = Digest(*map(int, count_all(hash_content(content))))
        stamps = records.column("kafka_timestamp").to_numpy()
        oldest = int(stamps.min()) if stamps.min() >= 0 else min(map(int, stamps[stamps >= 0]), default=None)
        offsets = records.column("offset").to_numpy()
        epochs = records.column("leader_epoch").fill_null(NO_EPOCH).to_numpy()
        seen = {int(epoch): offsets[epochs == epoch] for epoch in np.unique(epochs)}
        bounds = {epoch: (int(of_it.min()), int(of_it.max())) for epoch, of_it in seen.items()}
        return self + ShardRead(self.kafka_partition, self.start, digest, oldest, bounds)

    def as_bytes(self) -> bytes:
        """Return what `parse_shard` reads."""
        epochs = [(epoch, first, last) for epoch, (first, last) in self.epochs.items()]
        written = {"kafka_partition": self.kafka_partition, "start": self.start, "digest": self.digest.as_tuple()}
        return json.dumps({**written, "oldest_ms": self.oldest_ms, "epochs": epochs}).encode()


def parse_shard(written: bytes) -> ShardRead:
    """Return the read that `as_bytes` wrote."""
    given = json.loads(written)
    epochs = {epoch: (first, last) for epoch, first, last in given["epochs"]}
    digest = Digest(*given["digest"])
    return ShardRead(given["kafka_partition"], given["start"], digest, given.get("oldest_ms"), epochs)
