"""The reasons of poison records as a column, by their IDs: the SQL is not evaluated where there is one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from onceover.model.poison import PoisonRecord


def find_reason(columns: Collection[str], poison: Iterable[PoisonRecord], prefix: str = "") -> Column | None:
    """Return the reason of each record, null for nearly all; None if there is no poison record. `columns` name the
    frame's own, `prefix` is what their names begin with by now. Without a generation the frame is of one alone."""
    offsets: dict[tuple[str, int, str], list[int]] = {}
    for record in poison:
        of_group = (record.source.generation, record.source.kafka_partition, record.reason)
        offsets.setdefault(of_group, []).append(record.offset)
    reason: Column | None = None
    for (generation, kafka_partition, why), at in offsets.items():
        is_one = (F.col(f"`{prefix}kafka_partition`") == kafka_partition) & F.col(f"`{prefix}offset`").isin(at)
        if "generation" in columns:
            is_one &= F.col(f"`{prefix}generation`") == generation
        reason = F.when(is_one, why) if reason is None else reason.when(is_one, why)
    return reason
