"""Records that the contract's SQL cannot be evaluated for: Spark's process would die of them, or never end."""

from __future__ import annotations

from dataclasses import dataclass

from onceover.model.offsets import KafkaPartition

SQL_FAILED = "SQL failed"
SQL_TOO_SLOW = "SQL too slow"


@dataclass(frozen=True, slots=True)
class PoisonRecord:
    """A record that no one evaluates under that contract version: it goes to quarantine for this `reason`. `error` is
    what ended the evaluation, in words."""

    source: KafkaPartition
    offset: int
    version: int
    reason: str
    error: str
