"""What the client says of batches that it read ahead, among records that it delivers: in the order in which it does."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from onceover.errors import TransientError
from onceover.kafka import reader
from onceover.kafka.reader import KafkaSource, LogReader

BOGUS = KafkaError._NOT_IMPLEMENTED  # what the client says of the bytes behind a batch that it could not read


def make_message(offset: int, code: int | None = None) -> Message:
    return Message(offset=offset, value=b"v", timestamp=(1, 0), error=None if code is None else KafkaError(code))


def read(monkeypatch: pytest.MonkeyPatch, end: int, *delivered: Message) -> list[int]:
    """Return the offsets that a read of `[0, end)` gives, if the client delivers these messages at once."""

    class Consumer:
        def __init__(self, properties: dict[str, Any]) -> None:
            self.left = list(delivered)

        def assign(self, partitions: object) -> None: ...

        def unassign(self) -> None: ...

        def close(self) -> None: ...

        def poll(self, timeout: float) -> Message | None:
            return self.left.pop(0) if self.left else None

        def consume(self, number: int, timeout: float) -> list[Message]:
            rest, self.left = self.left, []
            return rest

    monkeypatch.setattr(reader, "Consumer", Consumer)
    source = KafkaSource("127.0.0.1:9", "things", "an id", stall_seconds=0.1)
    batches = LogReader(source)._read_on(0, 0, end)
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_error_behind_the_range_is_not_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = make_message(10**12, BOGUS), make_message(5)
    assert read(monkeypatch, 2, make_message(0), make_message(1), *beyond) == [0, 1]
    assert read(monkeypatch, 2, make_message(0), make_message(3), *beyond) == [0], "offset 1 has no record"


@pytest.mark.parametrize("code", [KafkaError._BAD_MSG, BOGUS])
def test_error_within_the_range_is_never_passed_over(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    with pytest.raises(TransientError):
        read(monkeypatch, 7, make_message(0), make_message(1), make_message(2, code), make_message(5), make_message(6))
