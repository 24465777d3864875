from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from onceover.errors import ConfigurationError, UnreachableError
from onceover.kafka import Topic
from onceover.offset_stores.kafka import KafkaOffsetStore


@pytest.fixture
def unused_address() -> Iterator[str]:
    """An address where nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def mute() -> Iterator[str]:
    """An address that takes a connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_broker_that_is_down_is_named_in_one_line_with_reason(unused_address: str) -> None:
    with pytest.raises(
        UnreachableError, match=rf"{unused_address}.*does not answer.*Connection refused.*ONCEOVER_KAFKA"
    ) as down:
        Topic(unused_address, "flights", "read_committed", {}, timeout=1).facts()
    assert "\n" not in str(down.value)


def test_broker_that_never_answers_is_not_waited_for_for_ever(mute: str) -> None:
    begun = time.monotonic()
    with pytest.raises(UnreachableError):
        Topic(mute, "flights", "read_committed", {}, timeout=1).facts()
    with pytest.raises(UnreachableError):
        KafkaOffsetStore(mute, "flights", "g", {}, timeout=1).load([0])
    assert time.monotonic() - begun < 8


def test_value_that_the_client_refuses_is_a_pipeline_mistake(unused_address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"security\.protocol.*correct the property"):
        Topic(unused_address, "flights", "read_committed", {"security.protocol": "nonsense"})


def test_wheel_without_kerberos_is_named_in_one_line() -> None:
    """The day the wheel has it, docs/deployment.md can say so."""
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(ConfigurationError, match="No provider for SASL mechanism GSSAPI") as refused:
        Topic("127.0.0.1:1", "flights", "read_committed", properties, timeout=1)
    assert "\n" not in str(refused.value)
