"""One late record landed in a large ledger, as a batch of ingest's does it but for raw."""

from __future__ import annotations

from datetime import UTC, datetime

from bench.large_ledger import generation, start_of
from onceover.ledger import batches
from onceover.ledger.database import Connection
from onceover.ledger.drivers import Epoch
from onceover.model.batch import Landing, LandingPart, RangeRead
from onceover.model.digest import Digest
from onceover.model.offsets import KafkaPartition, OffsetRange

RECORD = Digest(1, 1, 2, 3, 4)


def land_late_record(connection: Connection, epoch: Epoch, name: str, window: int, nth: int) -> None:
    """Land the `nth` late record of the pipeline in that window; `nth` must be another one each time."""
    source = KafkaPartition(generation(name), 0)
    offsets = OffsetRange(source, 10**9 + nth, 10**9 + nth + 1)
    batch = batches.begin(connection, epoch, 1, [offsets])
    landing = Landing(start_of(window), None, 10**6, 10**6 + 100, True, (LandingPart(source, RECORD),))
    read = RangeRead(offsets, RECORD, datetime.now(UTC), leader_epochs=((0, offsets.start),))
    batches.land_batch(connection, epoch, batch, [read], [landing])
