"""Rereads by the pipeline's driver: a window file gets lines again that it has lost, and nothing else changes.

The batch is begun, so that repairs wait for its append as for any other, and superseded when it ends: its records have
landed already, and a repair finds them by their IDs. Killed at any step, the range is read once more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from onceover.errors import TransientError
from onceover.ingest.batch_steps import BatchWork
from onceover.kafka import TopicFacts
from onceover.kafka.held_log import clip_to_held
from onceover.ledger import batches, rereads
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.model.offsets import OffsetRange
from onceover.model.window import format_moment

log = logging.getLogger(__name__)
MakeWork = Callable[[RegisteredPipeline, Sequence[OffsetRange], TopicFacts, datetime], BatchWork]


def append_next(
    connection: Connection, epoch: Epoch, registered: RegisteredPipeline, facts: TopicFacts, make_work: MakeWork
) -> bool:
    """Append the lines of the first range that waits; return whether there was one. Refuses a range that the log has
    lost since it was requested, one that Kafka does not deliver, and one whose file cannot be appended to."""
    wanted = rereads.list_wanted(connection, epoch.pipeline)
    if not wanted:
        return False
    first = wanted[0]
    offsets = clip_to_held(first.offsets, facts)
    if not len(offsets):
        rereads.finish(connection, epoch, first, refused_why="the log no longer holds it")
        return True
    version = registered.select_version(first.contract_version)
    batch_id = batches.begin(connection, epoch, version.contract_version, [offsets], None)
    try:
        appended = make_work(version, [offsets], facts, first.window_start).append()
    except TransientError as error:  # a record or a file of one window must not stop the batches of others
        log.warning("%s was not appended to its window file: %s", offsets, error)
        rereads.finish(connection, epoch, first, batch_id, refused_why=str(error))
        return True
    rereads.finish(connection, epoch, first, batch_id)
    records = sum(landing.digest.records for landing in appended.landings)
    log.info("read %s again: %d records of window %s", offsets, records, format_moment(first.window_start))
    return True
