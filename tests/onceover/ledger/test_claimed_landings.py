"""The landings of claimed windows have the ranges of their batches, by leader epoch."""

from __future__ import annotations

import pytest
from bench.large_ledger import generation, start_of

from onceover.ledger import claims, repair_requests
from onceover.ledger.database import Connection
from onceover.model.log_history import EpochSpan
from onceover.model.offsets import KafkaPartition, OffsetRange

pytestmark = pytest.mark.stack
NAME = "landed"


@pytest.mark.usefixtures("ledger")
def test_claimed_landings_have_leader_epochs(connection: Connection) -> None:
    connection.execute(
        "UPDATE onceover.batch_range SET leader_epochs = jsonb_build_array(ARRAY[1, start_offset], "
        "ARRAY[2, start_offset + 4]) WHERE generation = %s AND kafka_partition = 0",
        [generation(NAME)],
    )
    asked = repair_requests.create_request(connection, NAME, "kim", "a test", {start_of(3): []})
    (claimed,), _ = claims.claim(connection, repair_requests.read_request(connection, NAME, asked))

    def span(kafka_partition: int, start: int, end: int, epoch: int | None) -> EpochSpan:
        return EpochSpan(OffsetRange(KafkaPartition(generation(NAME), kafka_partition), start, end), epoch)

    assert [set(landing.readings) for landing in claimed.landings] == [
        {span(0, n, n + 4, 1), span(0, n + 4, n + 10, 2), span(1, n, n + 10, None)} for n in range(150, 250, 10)
    ], "the batches of its own minutes, and of the window after it"
