"""Where Kafka partitions are stopped, as the ledger keeps it for persons and for the next driver."""

from __future__ import annotations

import pytest
from tests.onceover.ledger.driven_pipeline import drive, register

from onceover.errors import FencedError
from onceover.ledger import drivers
from onceover.ledger.catalog import read_registered
from onceover.ledger.database import Connection
from onceover.ledger.log_limits import end_stopped, end_suspect, list_stopped, record_stopped
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.poison import SQL_FAILED, SQL_TOO_SLOW, PoisonRecord
from onceover.model.stopped_range import StopCause, StoppedRange

pytestmark = pytest.mark.stack
SOURCES = [KafkaPartition("0a1b2c3d", p) for p in (0, 1)]


def test_kafka_partition_is_stopped_at_one_range_for_each_cause(connection: Connection) -> None:
    name = register(connection).name
    epoch = drive(connection, name, *SOURCES)
    bomb, other, later, suspect = (
        StoppedRange(OffsetRange(SOURCES[p], start, start + 5), why)
        for p, start, why in ((1, 10, "a bomb"), (0, 50, "a bomb"), (1, 20, "another"), (1, 3, "a long expression"))
    )
    record_stopped(connection, epoch, StopCause.UNREADABLE, [bomb, other])
    record_stopped(connection, epoch, StopCause.SUSPECT, [suspect])
    assert list_stopped(connection, name, StopCause.UNREADABLE) == [other, bomb]
    record_stopped(connection, epoch, StopCause.UNREADABLE, [later])
    assert list_stopped(connection, name, StopCause.UNREADABLE) == [other, later]
    connection.execute("UPDATE onceover.kafka_partition SET unreadable_at = now() - interval '1 hour'")
    assert all(each.is_due for each in list_stopped(connection, name, StopCause.UNREADABLE))
    end_stopped(connection, name, StopCause.UNREADABLE, SOURCES[1])
    assert [each.offsets for each in list_stopped(connection, name, StopCause.UNREADABLE)] == [other.offsets]
    assert list_stopped(connection, name, StopCause.SUSPECT) == [suspect]
    drivers.end_epoch(connection, epoch)
    drivers.acquire(connection, name, "the next")
    with pytest.raises(FencedError):
        record_stopped(connection, epoch, StopCause.SUSPECT, [suspect])


def test_ended_search_leaves_each_poison_record_once(connection: Connection) -> None:
    name = register(connection).name
    epoch = drive(connection, name, *SOURCES)
    record_stopped(connection, epoch, StopCause.SUSPECT, [StoppedRange(OffsetRange(SOURCES[0], 5, 9), "it died")])
    first, second = (PoisonRecord(SOURCES[p], 5, 1, SQL_FAILED, 'division by "0"') for p in (0, 1))
    end_suspect(connection, epoch, SOURCES[0], [first, first])
    end_suspect(connection, epoch, SOURCES[0], [PoisonRecord(SOURCES[0], 5, 1, SQL_TOO_SLOW, "later"), second])
    end_suspect(connection, epoch, SOURCES[0])
    assert read_registered(connection, name).poison == (first, second)
    assert list_stopped(connection, name, StopCause.SUSPECT) == []
