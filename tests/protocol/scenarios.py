"""The small worlds that are explored in full, and the larger one that is walked through at random."""

from __future__ import annotations

from tests.protocol.state import Left, Scenario

# The third record belongs to the first window and comes when that one may have closed already.
LATE_RECORD = ((0, 1, 0),)

CRASHES = Scenario(LATE_RECORD, Left(faults=1, takeovers=1, repairs=1))
TWO_KAFKA_PARTITIONS = Scenario(((0, 1), (0,)), Left(faults=1, takeovers=1))
QUARANTINE = Scenario(((0, None, 1),), Left(faults=1, takeovers=1), torn=(0, 2))
HOLE = Scenario(LATE_RECORD, Left(faults=1, repairs=1, moves=1))
# Two holes with a landed record between, or one that is larger than a batch: refills of several ranges, and of parts.
HOLES = Scenario(LATE_RECORD, Left(faults=1, moves=2), batch_sizes=(1, 2))
HOLE_FOR_EVER = Scenario(LATE_RECORD, Left(faults=1, repairs=1, moves=1), log_holds=False)
BLOCKED = Scenario(((0, 1),), Left(faults=1, repairs=3, failed_tries=2))
TWO_REPAIRERS = Scenario(LATE_RECORD, Left(faults=1, repairs=2))
SLOW_DETECTION = Scenario(LATE_RECORD, Left(faults=1, repairs=1, looks=1))

EXPLORED = {
    "crashes": CRASHES,
    "two Kafka partitions": TWO_KAFKA_PARTITIONS,
    "quarantine": QUARANTINE,
    "hole and refill": HOLE,
    "several holes": HOLES,
    "hole for ever": HOLE_FOR_EVER,
    "blocked": BLOCKED,
    "two repairers": TWO_REPAIRERS,
    "slow detection": SLOW_DETECTION,
}

WALKED = Scenario(
    ((0, 1, None, 0), (1, 0, 1)),
    Left(faults=3, takeovers=2, repairs=4, looks=2, moves=1, failed_tries=3),
    batch_sizes=(2, 3, 8),
    repaired=(0, 1),
    torn=(0, 1, 2),
)

REPLAYED = Scenario(
    ((0, 1, None, 0), (1, 0)),
    Left(faults=2, takeovers=1, repairs=3, looks=2, moves=1, failed_tries=2),
    batch_sizes=(2, 3, 8),
    repaired=(0, 1),
    torn=(0, 1, 2),
)
