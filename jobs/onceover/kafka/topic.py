"""The current facts of a topic: its incarnation, its Kafka partitions, and the start and end of their logs."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec  # type: ignore[attr-defined]

from onceover.errors import TerminalError, UnreachableError
from onceover.kafka.client import TIMEOUT_SECONDS, Admin
from onceover.kafka.rights import Right
from onceover.model.offsets import GENERATION_DIGITS
from onceover.model.pipeline import Pipeline

NO_TOPIC_ID = "A" * 22
"""The zero ID, which brokers report that are older than topic IDs."""
HOUR_MS: Final = 3_600_000
AHEAD: Final = "message.timestamp.after.max.ms"
"""Kafka's bound on producers' clocks, of an hour by default; brokers before 3.6 have none."""
UNPACKED: Final = "max.decompressed.message.bytes"
"""Kafka's bound on a record of a compressed batch; brokers up to 4.2 have none."""
_UNBOUNDED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The facts of a topic at one moment. `topic_id` has the form that Kafka's own tools print.

    `earliest` and `end` hold every Kafka partition; `end` is the next offset that a reader at the isolation level
    would wait for: the last stable offset under read_committed, else the high watermark. `leader_epochs` are those of
    the logs' leaders now: a log is cut only under a new one. An old broker gives none. `high` are the high watermarks
    of a moment before: records from `end` up to there were hidden behind an open transaction at both moments.
    """

    topic: str
    topic_id: str
    generation: str
    earliest: Mapping[int, int]
    end: Mapping[int, int]
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    high: Mapping[int, int] = field(default_factory=dict)

    def log_end(self, kafka_partition: int) -> int:
        """Return where the Kafka partition's log ends, with records that an open transaction hides."""
        return max(self.end[kafka_partition], self.high.get(kafka_partition, 0))

    def count_hidden(self, kafka_partition: int) -> int:
        """Return how many offsets an open transaction hides."""
        start = max(self.end[kafka_partition], self.earliest[kafka_partition])
        return max(0, self.log_end(kafka_partition) - start)


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """A topic's effective configuration. `retention_ms` is None if no record is too old; `compacted`: the log may drop
    older values of a key; `stamped_on_arrival`: the broker sets timestamps; `unclean_election`: a replica that lacks
    records may lead; a producer's timestamp may be `ahead_ms` ahead of the broker's clock. A Kafka partition keeps
    `retention_bytes`, None if it may grow for ever; a record of a compressed batch has at most `unpacked_bytes`, None
    where the broker has no such bound."""

    retention_ms: int | None
    compacted: bool
    stamped_on_arrival: bool
    unclean_election: bool
    ahead_ms: int = HOUR_MS
    retention_bytes: int | None = None
    unpacked_bytes: int | None = None


def derive_generation(topic_id: str) -> str:
    """Return the first 8 hex digits of a topic ID's 128 bits. Raise TerminalError for the zero ID."""
    if topic_id == NO_TOPIC_ID:
        raise TerminalError(
            "the brokers give topics no ID, so that a recreated topic cannot be distinguished from its predecessor; "
            "upgrade them to Kafka 2.8 or later, with inter.broker.protocol.version at least 2.8"
        )
    return base64.urlsafe_b64decode(topic_id + "==").hex()[:GENERATION_DIGITS]


class Topic:
    """A topic of one cluster; its connections stay open between requests."""

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
        self._isolation = IsolationLevel[isolation.upper()]
        self._admin = Admin(bootstrap, properties, timeout)

    def facts(self) -> TopicFacts:
        """Read the topic's facts, in three round trips.

        Raise UnreachableError if the cluster or a Kafka partition's leader does not answer, TerminalError if the
        topic does not exist. A Kafka partition without an offset is never left out.
        """
        described = self._admin.describe(self.topic)
        leaderless = sorted(p.id for p in described.partitions if p.leader is None)
        if leaderless:
            raise UnreachableError(
                f"topic {self.topic!r}: Kafka partitions {leaderless} have no leader; bring their brokers back"
            )
        partitions = [TopicPartition(self.topic, p.id) for p in described.partitions]
        topic_id = str(described.topic_id)
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        # Before the end: what arrives in between is not hidden.
        high = self._request_offsets(partitions, latest, IsolationLevel.READ_UNCOMMITTED)
        first = self._request_offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        (high_watermarks, _), (earliest, _) = self._await_offsets(high), self._await_offsets(first)
        end, leader_epochs = self._await_offsets(self._request_offsets(partitions, latest))
        generation = derive_generation(topic_id)
        return TopicFacts(self.topic, topic_id, generation, earliest, end, leader_epochs, high_watermarks)

    def read_cluster_id(self) -> str:
        """Return the cluster's ID, which a mirror does not share. Raise UnreachableError if it does not answer."""
        future = self._admin.client.describe_cluster(request_timeout=self._admin.timeout)
        return str(self._admin.wait(future, "describe the cluster").cluster_id)

    def policy(self) -> TopicPolicy:
        """Read the topic's configuration. Raise as `facts`."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic)
        futures = self._admin.client.describe_configs([resource], request_timeout=self._admin.timeout)
        what = f"read the configuration of topic {self.topic!r}"
        settings = self._admin.wait(futures[resource], what, Right("DescribeConfigs", self.topic))
        kinds = settings["cleanup.policy"].value.split(",")

        def read_bound(name: str) -> int | None:
            bound = int(settings[name].value)
            return bound if bound >= 0 and "delete" in kinds else None

        return TopicPolicy(
            retention_ms=read_bound("retention.ms"),
            compacted="compact" in kinds,
            stamped_on_arrival=settings["message.timestamp.type"].value == "LogAppendTime",
            unclean_election=settings["unclean.leader.election.enable"].value == "true",
            ahead_ms=int(settings[AHEAD].value if AHEAD in settings else _UNBOUNDED),
            retention_bytes=read_bound("retention.bytes"),
            unpacked_bytes=int(settings[UNPACKED].value) if UNPACKED in settings else None,
        )

    def close(self) -> None:
        """Close the connections. The library has no call for that: it closes them with the last reference."""
        del self._admin

    def _request_offsets(
        self, partitions: list[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel | None = None
    ) -> dict[TopicPartition, Future[Any]]:
        return self._admin.client.list_offsets(
            dict.fromkeys(partitions, spec),
            isolation_level=self._isolation if isolation is None else isolation,
            request_timeout=self._admin.timeout,
        )

    def _await_offsets(self, futures: Mapping[TopicPartition, Future[Any]]) -> tuple[dict[int, int], dict[int, int]]:
        """Return the offset of each Kafka partition, and its leader epoch where the broker gives one."""
        offsets: dict[int, int] = {}
        leader_epochs: dict[int, int] = {}
        for partition, future in futures.items():
            what = f"list the offsets of topic {self.topic!r}, Kafka partition {partition.partition}"
            listed = self._admin.wait(future, what, Right("Describe", self.topic))
            offset = listed.offset
            if offset < 0:
                raise self._admin.explain(KafkaError(KafkaError.LEADER_NOT_AVAILABLE), what)
            offsets[partition.partition] = offset
            if listed.leader_epoch is not None:
                leader_epochs[partition.partition] = listed.leader_epoch
        return dict(sorted(offsets.items())), leader_epochs


def read_cluster_id(bootstrap: str, pipeline: Pipeline) -> str:
    """Return the cluster's ID, by the pipeline's client properties. Raise as `Topic.read_cluster_id`."""
    with closing(Topic(bootstrap, pipeline.contract.topic, pipeline.ingest.isolation, pipeline.kafka)) as topic:
        return topic.read_cluster_id()
