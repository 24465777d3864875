"""What the driver reads again: holes land as batches do, and a damaged window file gets lines again that it has lost.

For damage the batch is begun, so that repairs wait for its append as for any other, and superseded when it ends: its
records have landed already, and a repair finds them by their IDs. Killed at any step, the range is read once more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from onceover.errors import SparkLostError, TransientError
from onceover.ingest.batch_steps import BatchResult
from onceover.kafka import TopicFacts
from onceover.kafka.log_bounds import clip_to_held
from onceover.ledger import batches
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.ledger.read_again import ReadAgain, finish, list_wanted
from onceover.model.offsets import OffsetRange

log = logging.getLogger(__name__)
Append = Callable[[RegisteredPipeline, Sequence[OffsetRange], TopicFacts, datetime | None], BatchResult]
"""Appends a batch of these ranges under the contract of the pipeline; given a window, only that window's records."""


def list_readable(connection: Connection, epoch: Epoch, facts: TopicFacts) -> list[ReadAgain]:
    """Return what waits, as far as the log holds it. Refuses what the log has lost since it was requested."""
    clipped = [
        replace(each, offsets=clip_to_held(each.offsets, facts)) for each in list_wanted(connection, epoch.pipeline)
    ]
    if gone := [each for each in clipped if not len(each.offsets)]:
        finish(connection, epoch, gone, refused_why="the log no longer holds it")
    return [each for each in clipped if len(each.offsets)]


def append_damage(
    connection: Connection,
    epoch: Epoch,
    registered: RegisteredPipeline,
    facts: TopicFacts,
    damage: ReadAgain,
    append: Append,
) -> None:
    """Append the lines of one range to its window file. Refuses a range that Kafka does not deliver, and one whose file
    cannot be appended to."""
    version = registered.select_version(damage.contract_version)
    batch_id = batches.begin(connection, epoch, version.contract_version, [damage.offsets], None)
    try:
        appended = append(version, [damage.offsets], facts, damage.window_start)
    except TransientError as error:  # a record or a file of one window must not stop the batches of others
        log.warning("%s was not appended to its window file: %s", damage.offsets, error)
        finish(connection, epoch, [damage], batch_id, refused_why=str(error))
        return
    except SparkLostError as error:  # the next process would die of the same range
        finish(connection, epoch, [damage], batch_id, refused_why=str(error))
        raise
    finish(connection, epoch, [damage], batch_id)
    records = sum(landing.digest.records for landing in appended.landings)
    log.info("read %s again: %d records of window %s", damage.offsets, records, damage.window_start)
