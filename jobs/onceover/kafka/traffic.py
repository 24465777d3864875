"""Tells a slow broker from a silent one, and from a batch that no client takes apart, while no record arrives: by what
librdkafka's statistics say of arriving bytes."""

from __future__ import annotations

import json
from time import monotonic
from typing import Any, Final

from confluent_kafka import ThrottleEvent

MAX_SECONDS: Final = 330.0
"""Without an offset's progress, although bytes arrive or a quota holds them back: longer than the longest timeout of
one answer (`socket.timeout.ms`)."""
ENOUGH_FETCHES: Final = 3
ENOUGH_SECONDS: Final = 10.0
"""Whole answers with the same batch, within that time or longer, from which the client got no record."""
_TICK_SECONDS: Final = 1.0
_STALE_SECONDS: Final = 30.0


class Traffic:
    """What one client receives of one Kafka partition. `refetched` counts whole answers since the last progress whose
    batch ended before its first record did: the client asks for it again and again, without a word."""

    def __init__(self) -> None:
        self._topic, self._kafka_partition = "", ""
        self._next_offset: int | None = None
        self._answers: dict[str, int] = {}
        self._cut_answers = 0
        self._looked_at = self._throttled_until = 0.0
        self.begin("", -1)

    def configure(self) -> dict[str, Any]:
        """Return the client's properties by which it reports here."""
        return {
            "statistics.interval.ms": int(_TICK_SECONDS * 1000),
            "stats_cb": self.note_statistics,
            "throttle_cb": self.note_throttle,
        }

    def begin(self, topic: str, kafka_partition: int) -> None:
        """Watch this Kafka partition from now on. A quota holds back the next answer, whatever it is about."""
        self._topic, self._kafka_partition, self._next_offset = topic, str(kafka_partition), None
        self.note_progress()

    def note_progress(self) -> None:
        """Take note of a record, or of the log's end."""
        self.refetched = 0
        self._progress_at = self._sign_at = monotonic()

    @property
    def stuck_seconds(self) -> float:
        """How long there has been no progress."""
        return monotonic() - self._progress_at

    @property
    def silent_seconds(self) -> float:
        """How long nothing at all had arrived when the last statistics came, the time left out for which the broker
        said that nothing would. Statistics that are late prove no silence."""
        return self._looked_at - max(self._sign_at, min(self._throttled_until, self._looked_at))

    def is_without_end(self, stall_seconds: float) -> bool:
        """Return whether the client fetches the same batch again and again."""
        return self.refetched >= ENOUGH_FETCHES and self.stuck_seconds > min(ENOUGH_SECONDS, stall_seconds)

    def explain_slowness(self) -> str:
        """Return why there has been no progress for so long, and the remedy."""
        since = f"no record came within {self.stuck_seconds:.0f} s"
        if monotonic() - self._throttled_until < _STALE_SECONDS:
            return (
                f"{since}, for a quota of Kafka's holds this client back: it delivers no batch that is larger than "
                "about ten seconds of `consumer_byte_rate`; raise that"
            )
        return (
            f"{since}, although bytes arrive: the link is too slow for one answer of Kafka's; lower "
            "`fetch.message.max.bytes` under [kafka]"
        )

    def note_throttle(self, event: ThrottleEvent) -> None:
        """Take a broker's word that it answers again after so many seconds."""
        if event.throttle_time > 0:
            self._throttled_until = max(self._throttled_until, monotonic() + event.throttle_time)

    def note_statistics(self, text: str) -> None:
        """Take librdkafka's statistics: STATISTICS.md of that library explains each field."""
        statistics = json.loads(text)
        self._looked_at = monotonic()
        brokers: dict[str, dict[str, Any]] = statistics["brokers"]
        partitions = statistics["topics"].get(self._topic, {}).get("partitions", {})
        next_offset = partitions.get(self._kafka_partition, {}).get("next_offset")
        cut_answers = sum(broker["rxpartial"] for broker in brokers.values())
        if next_offset != self._next_offset:
            self._next_offset = next_offset
            self.note_progress()  # over records that no reader is shown: aborted ones, markers
        elif cut_answers > self._cut_answers:
            self.refetched += cut_answers - self._cut_answers
            self._sign_at = monotonic()
        elif any(map(self._is_within_answer, brokers, brokers.values())):
            self._sign_at = monotonic()
        self._cut_answers = cut_answers
        self._answers = {name: broker["rx"] for name, broker in brokers.items()}

    def _is_within_answer(self, name: str, broker: dict[str, Any]) -> bool:
        """Return whether bytes have arrived since the last statistics, and no answer has ended."""
        idle_seconds: float = broker["rxidle"] / 1e6
        return broker["rx"] == self._answers.get(name) and 0 <= idle_seconds < _TICK_SECONDS
