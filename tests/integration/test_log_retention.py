"""How long Kafka keeps a topic whose size is bounded, as what has landed lets expect."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.integration.events import event
from tests.integration.lane import Lane, Lanes

from onceover.cli.doctor import check_kafka, check_postgres
from onceover.config.endpoints import address
from onceover.observability.metric_values import Signals, read_signals

pytestmark = pytest.mark.stack
AGE_SECONDS, RECORDS, VALUE_BYTES = 4000, 100, 2000


def read(lane: Lane) -> Signals:
    """Read the metrics after one turn of another driver."""
    lane.turn()
    with lane.ledger() as ledger:
        (signals,) = (each for each in read_signals(ledger, timedelta(hours=1)) if each.pipeline == lane.name)
    return signals


def limit_log(lane: Lane, retention_bytes: int) -> None:
    entry = ConfigEntry("retention.bytes", str(retention_bytes), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, lane.topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": address("kafka")})
    admin.incremental_alter_configs([resource])[resource].result(30)


@pytest.mark.rare
def test_bytes_that_a_topic_keeps_are_a_clock(lanes: Lanes) -> None:
    """A hundred records of 2 kB since 4,000 s: a log of twice as many bytes lasts for 8,000 s, a smaller one no longer
    than it has lasted."""
    lane = lanes(topic_config={"retention.bytes": str(2 * RECORDS * VALUE_BYTES)})
    began = time.time()
    for number in range(RECORDS):
        stamp = int((began - AGE_SECONDS * (1 - number / RECORDS)) * 1000)
        lane.produce([event(number / 25)[:-1] + b', "rest": "' + b"v" * VALUE_BYTES + b'"}'], timestamp=stamp)
    lane.ingest()
    signals = read(lane)
    assert signals.log_retention is not None
    assert signals.log_until is not None
    assert 0.85 * 2 * AGE_SECONDS < signals.log_retention < 2 * AGE_SECONDS + 60
    assert abs(signals.log_until - (began - AGE_SECONDS + signals.log_retention)) < 1
    assert "at their present pace, by retention.bytes=400000" in " ".join(o.what for o in check_kafka([lane.pipeline]))

    limit_log(lane, RECORDS * VALUE_BYTES // 4)
    signals = read(lane)
    assert signals.log_retention is not None
    assert signals.log_until is not None
    assert AGE_SECONDS <= signals.log_retention < AGE_SECONDS + 120
    assert signals.log_until - time.time() < signals.log_retention / 4, "the alert for records at risk fires"
    assert "raise the topic's retention.ms or retention.bytes" in " ".join(
        outcome.what for outcome in check_postgres([lane.pipeline])
    )
