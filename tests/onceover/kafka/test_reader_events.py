"""What the client says of batches that it read ahead, among records that it delivers: in the order in which it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaError

from onceover.errors import TransientError
from onceover.kafka import reader
from onceover.kafka.reader import KafkaSource, LogReader

BOGUS = KafkaError._NOT_IMPLEMENTED  # what the client says of the bytes behind a batch that it could not read


@dataclass(frozen=True)
class Delivered:
    """A double of a message."""

    at: int
    code: int | None = None

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return (1, 0)

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> None:
        return None

    def leader_epoch(self) -> int:
        return 0

    def __len__(self) -> int:
        return 1


def read(monkeypatch: pytest.MonkeyPatch, end: int, *delivered: Delivered) -> list[int]:
    """Return the offsets that a read of `[0, end)` gives, if the client delivers these messages at once."""

    class Consumer:
        def __init__(self, properties: dict[str, Any]) -> None:
            self.left = list(delivered)

        def assign(self, partitions: object) -> None: ...

        def unassign(self) -> None: ...

        def close(self) -> None: ...

        def poll(self, timeout: float) -> Delivered | None:
            return self.left.pop(0) if self.left else None

        def consume(self, number: int, timeout: float) -> list[Delivered]:
            rest, self.left = self.left, []
            return rest

    monkeypatch.setattr(reader, "Consumer", Consumer)
    source = KafkaSource("127.0.0.1:9", "things", "an id", stall_seconds=0.1)
    batches = LogReader(source)._read_on(0, 0, end)
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_error_behind_the_range_is_not_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = Delivered(10**12, BOGUS), Delivered(5)
    assert read(monkeypatch, 2, Delivered(0), Delivered(1), *beyond) == [0, 1]
    assert read(monkeypatch, 2, Delivered(0), Delivered(3), *beyond) == [0], "offset 1 has no record"


@pytest.mark.parametrize("code", [KafkaError._BAD_MSG, BOGUS])
def test_error_within_the_range_is_never_passed_over(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    with pytest.raises(TransientError):
        read(monkeypatch, 7, Delivered(0), Delivered(1), Delivered(2, code), Delivered(5), Delivered(6))
