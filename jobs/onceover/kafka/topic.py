"""What a topic is at this moment: its incarnation, its Kafka partitions, and where their logs begin and end."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec  # type: ignore[attr-defined]

from onceover.errors import UnreachableError
from onceover.kafka.client import TIMEOUT_SECONDS, Admin
from onceover.model.offsets import GENERATION_DIGITS

ISOLATION_LEVELS = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One reading of a topic. `topic_id` is as Kafka's own tools print it.

    `earliest` and `end` hold every Kafka partition; `end` is the next offset that a reader at the isolation level
    would wait for: the last stable offset under read_committed, else the high watermark.
    """

    topic: str
    topic_id: str
    generation: str
    earliest: Mapping[int, int]
    end: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """A topic's configuration, wherever it was set. `retention_ms` is None if records stay for ever; `compacted`: older
    values of a key may go; `stamped_on_arrival`: by the broker; `unclean_election`: who lacks records may lead."""

    retention_ms: int | None
    compacted: bool
    stamped_on_arrival: bool
    unclean_election: bool


def derive_generation(topic_id: str) -> str:
    """The first 8 hex digits of a topic ID's 128 bits."""
    return base64.urlsafe_b64decode(topic_id + "==").hex()[:GENERATION_DIGITS]


class Topic:
    """A topic of one cluster, asked as often as its facts are wanted; keeps its connections between two questions."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        isolation: str,
        properties: Mapping[str, str],
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.topic = topic
        self._isolation = ISOLATION_LEVELS[isolation]
        self._admin = Admin(bootstrap, properties, timeout)

    def facts(self) -> TopicFacts:
        """The topic's facts now, from two round trips.

        Raises UnreachableError if the cluster or a Kafka partition's leader does not answer, TerminalError if the
        topic does not exist. A Kafka partition without an offset is never left out.
        """
        described = self._admin.describe(self.topic)
        leaderless = sorted(p.id for p in described.partitions if p.leader is None)
        if leaderless:
            raise UnreachableError(
                f"topic {self.topic!r}: Kafka partitions {leaderless} have no leader; bring their brokers back"
            )
        asked = [TopicPartition(self.topic, p.id) for p in described.partitions]
        topic_id = str(described.topic_id)
        return TopicFacts(
            topic=self.topic,
            topic_id=topic_id,
            generation=derive_generation(topic_id),
            earliest=self._list_offsets(asked, OffsetSpec.earliest()),  # type: ignore[no-untyped-call]
            end=self._list_offsets(asked, OffsetSpec.latest()),  # type: ignore[no-untyped-call]
        )

    def policy(self) -> TopicPolicy:
        """The topic's configuration now."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic)
        asked = self._admin.client.describe_configs([resource], request_timeout=self._admin.timeout)
        found = self._admin.wait(asked[resource], f"read the configuration of topic {self.topic!r}")
        retention = int(found["retention.ms"].value)
        kinds = found["cleanup.policy"].value.split(",")
        return TopicPolicy(
            retention_ms=retention if retention >= 0 and "delete" in kinds else None,
            compacted="compact" in kinds,
            stamped_on_arrival=found["message.timestamp.type"].value == "LogAppendTime",
            unclean_election=found["unclean.leader.election.enable"].value == "true",
        )

    def close(self) -> None:
        """Let the connections go. The library has no call for it: it closes them with the last reference."""
        del self._admin

    def _list_offsets(self, asked: list[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
        futures = self._admin.client.list_offsets(
            dict.fromkeys(asked, spec), isolation_level=self._isolation, request_timeout=self._admin.timeout
        )
        offsets: dict[int, int] = {}
        for asked_of, future in futures.items():
            what = f"list the offsets of topic {self.topic!r}, Kafka partition {asked_of.partition}"
            offset = self._admin.wait(future, what).offset
            if offset < 0:
                raise self._admin.explain(KafkaError(KafkaError.LEADER_NOT_AVAILABLE), what)
            offsets[asked_of.partition] = offset
        return dict(sorted(offsets.items()))
