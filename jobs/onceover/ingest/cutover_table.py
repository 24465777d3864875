"""A changed contract cut over to: where each Kafka partition's records have the new version, in one transaction.

The cutover lies at the frontier, or beyond it where a driver had begun to read and did not land: lines of that may
stand in raw, dated by the old contract, and more may follow from a driver that was only paused. So every line of one ID
is of one version, whoever wrote it and however often.
"""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.errors import LockNotAvailable

from onceover.errors import BusyError, UsageError
from onceover.ledger.catalog import Registered, keep_contract, require_in_force
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch, require_epoch
from onceover.ledger.refills import wanted
from onceover.model.contract import Columns
from onceover.model.offsets import KafkaPartition
from onceover.model.pipeline import Pipeline

_PATIENCE_SECONDS = 5  # readers of the table queue up behind whoever waits to add a column


def next_cutovers(connection: Connection, pipeline: str) -> Mapping[KafkaPartition, int]:
    """Where a cutover would lie now. Raises UsageError while something before it is missing."""
    rows = connection.execute(
        """
        SELECT generation, kafka_partition, frontier, reach, greatest(frontier, (
          SELECT max(r.end_offset) FROM onceover.batch_range r JOIN onceover.batch b USING (batch_id)
          WHERE b.pipeline = k.pipeline AND r.generation = k.generation AND r.kafka_partition = k.kafka_partition
          )) AS first_offset
        FROM onceover.kafka_partition k WHERE pipeline = %s ORDER BY 1, 2
        """,
        [pipeline],
    ).fetchall()
    if any(row["frontier"] < row["reach"] for row in rows) or wanted(connection, pipeline):
        raise UsageError(
            f"offsets of {pipeline} are missing, and a cutover lies at a frontier: see `onceover holes {pipeline}`; "
            "the next repair reads them again, `onceover accept-loss` settles what Kafka has no more"
        )
    return {KafkaPartition(row["generation"], row["kafka_partition"]): row["first_offset"] for row in rows}


def cut_over(
    connection: Connection, epoch: Epoch, known: Registered, pipeline: Pipeline, columns: Columns, who: str, why: str
) -> Mapping[KafkaPartition, int]:
    """Put the pipeline's contract into force as the next version, all in one transaction; returns the cutovers.

    Raises UsageError as `next_cutovers`, ContractChangedError if somebody else was faster, BusyError while somebody
    reads the aggregates for long.
    """
    version = known.contract_version + 1
    try:
        with connection.transaction():
            require_epoch(connection, epoch)
            require_in_force(connection, known)
            cutovers = next_cutovers(connection, known.name)
            keep_contract(connection, pipeline, version, columns, who, why)
            connection.cursor().executemany(
                "INSERT INTO onceover.cutover VALUES (%s, %s, %s, %s, %s)",
                [(known.name, version, s.generation, s.kafka_partition, at) for s, at in cutovers.items()],
            )
            _add_measures(connection, known, columns)
            connection.execute(
                "UPDATE onceover.pipeline SET contract_version = %s WHERE name = %s", [version, known.name]
            )
    except LockNotAvailable as error:
        raise BusyError(
            f"a transaction has held the tables of {known.name} for more than {_PATIENCE_SECONDS} s, so no measure can "
            "be added; nothing was changed, try again when it has ended"
        ) from error
    return cutovers


def _add_measures(connection: Connection, known: Registered, columns: Columns) -> None:
    there = set(known.columns.names)
    new = [column for column in columns.measures if column.name not in there]
    if new:
        connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE_SECONDS}s'")
        known.table.create(connection)
        known.table.add(connection, new)
