"""A range to read again that Kafka does not deliver, on a real ledger: the driver goes on with other batches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NoReturn

import pytest
from tests.onceover.ledger.driven_pipeline import NOON, SOURCE, drive, insert_window, of, register

from onceover.errors import TransientError
from onceover.ingest.read_again import append_damage, list_readable
from onceover.kafka import TopicFacts
from onceover.ledger import read_again, repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.read_again import ReadAgain
from onceover.model.offsets import OffsetRange

pytestmark = pytest.mark.stack
LACKING = of(5, 10)


def test_range_that_kafka_does_not_deliver_is_refused(connection: Connection) -> None:
    known = register(connection)
    epoch = drive(connection, known.name)
    request = repair_requests.create_request(connection, known.name, "me", "a test", {})
    insert_window(connection, known.name)
    read_again.request_ranges(connection, known.name, request, [ReadAgain(LACKING, NOON, 1)])
    facts = TopicFacts("events", "topic", SOURCE.generation, {0: 0}, {0: 100})

    def append(
        by: RegisteredPipeline, ranges: Sequence[OffsetRange], at: TopicFacts, only: datetime | None
    ) -> NoReturn:
        raise TransientError("Spark failed: the broker does not deliver offset 7")

    (damage,) = list_readable(connection, epoch, facts)
    append_damage(connection, epoch, known, facts, damage, append)
    assert read_again.list_refused(connection, known.name, request) == (
        (LACKING, "Spark failed: the broker does not deliver offset 7"),
    )
    states = connection.execute("SELECT state FROM onceover.batch WHERE pipeline = %s", [known.name]).fetchall()
    assert states == [{"state": "superseded"}], "nothing is left in flight"
    assert list_readable(connection, epoch, facts) == [], "the next batch is any other"
