"""Records of a sample, from which a pipeline is drafted."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from onceover.kafka.record_batch import SCHEMA as READ

STAMP = 1_357_041_601_500  # 2013-01-01T12:00:01.5Z


def make_records(values: Sequence[bytes | None], **columns: Sequence[bytes | None]) -> pa.Table:
    """Return records of STAMP as a reader returns them."""
    count = len(values)
    zeros = {name: [0] * count for name in ("kafka_partition", "offset", "leader_epoch")}
    nulls = dict.fromkeys(("key", "headers"), [None] * count)
    return pa.table(zeros | nulls | {"value": values, "kafka_timestamp": [STAMP] * count} | columns, READ)
