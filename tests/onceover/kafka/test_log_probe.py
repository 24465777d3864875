from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.integration.cut_logs import damage_batch, produce_compressed

from onceover.errors import TransientError
from onceover.kafka.guarded_read import read_range
from onceover.kafka.log_probe import LogProbe

if TYPE_CHECKING:
    from tests.onceover.conftest import Broker

    from onceover_local.stack import Stack

pytestmark = pytest.mark.stack


def test_probe_gives_the_first_record_at_an_offset_or_beyond(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"a", b"b"])
    broker.transact(topic, [b"x"], abort=True)  # 2, marker 3
    broker.produce(topic, [b"c"])
    with closing(LogProbe(broker.source(topic), 0, 5)) as probe:
        assert [probe.find_epoch(offset) for offset in (0, 1, 2, 4, 5)] == [(0, 0), (1, 0), (4, 0), (4, 0), None]
    with closing(LogProbe(broker.source(topic, isolation="read_uncommitted"), 0, 5)) as probe:
        assert probe.find_epoch(2) == (2, 0)


def test_probe_goes_on_behind_a_damaged_batch(broker: Broker, topic: str, stack: Stack) -> None:
    broker.produce(topic, [b"a", b"b"])
    produce_compressed(topic, 3)
    damage_batch(stack, topic)
    with closing(LogProbe(broker.source(topic), 0, 5)) as probe:
        assert [probe.find_epoch(offset) for offset in (1, 2, 4)] == [(1, 0), None, None]
    broker.produce(topic, [b"c", b"d"])
    with closing(LogProbe(broker.source(topic), 0, 7)) as probe:
        assert [probe.find_epoch(offset) for offset in (1, 2, 3, 4, 5)] == [(1, 0), (5, 0), (5, 0), (5, 0), (5, 0)]
    assert [sum(map(len, read_range(broker.source(topic), 0, *ends))) for ends in ((0, 2), (5, 7))] == [2, 2]
    with pytest.raises(TransientError, match="offset 2"):
        list(read_range(broker.source(topic), 0, 0, 3))


def test_facts_have_the_leader_epochs(broker: Broker, topic: str) -> None:
    assert broker.facts(topic).leader_epochs == {0: 0}


def test_probe_of_an_expired_offset_is_retried(broker: Broker, topic: str) -> None:
    broker.produce(topic, [b"a", b"b", b"c"])
    broker.expire(topic, before=2)
    with closing(LogProbe(broker.source(topic), 0, 3)) as probe, pytest.raises(TransientError, match="offset 0"):
        probe.find_epoch(0)
