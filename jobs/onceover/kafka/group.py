"""Offsets kept where Kafka's own tools look for them: committed under a consumer group."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition

from onceover.errors import BusyError
from onceover.kafka.client import TIMEOUT_SECONDS, Admin

_log = logging.getLogger(__name__)


class KafkaOffsetStore:
    """An OffsetStore in a consumer group that has no members: nobody ever subscribes under it.

    The broker forgets the offsets of such a group `offsets.retention.minutes` (a week by default) after the last
    commit of a Kafka partition; committing again what is stored counts as a commit, and keeps a quiet topic's.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        properties: Mapping[str, str],
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._topic = topic
        self._group = group
        self._admin = Admin(bootstrap, properties, timeout)

    def load(self, kafka_partitions: Iterable[int]) -> Mapping[int, int]:
        """See OffsetStore."""
        asked = [TopicPartition(self._topic, p) for p in sorted(set(kafka_partitions))]
        if not asked:  # Kafka would take "none" for "all"
            return {}
        request = [ConsumerGroupTopicPartitions(self._group, asked)]
        futures = self._admin.client.list_consumer_group_offsets(
            request, require_stable=True, request_timeout=self._admin.timeout
        )
        what = f"load the offsets of consumer group {self._group!r}"
        answer = self._admin.wait(futures[self._group], what).topic_partitions
        self._raise_for(answer, what)
        return {p.partition: p.offset for p in answer if p.offset >= 0}

    def commit(self, offsets: Mapping[int, int]) -> Mapping[int, int]:
        """See OffsetStore. Raises BusyError while somebody consumes under this group."""
        if not offsets:
            return {}
        stored = self.load(offsets)
        kept = {p: max(offset, stored.get(p, 0)) for p, offset in sorted(offsets.items())}
        backwards = {p: (stored[p], offset) for p, offset in sorted(offsets.items()) if kept[p] != offset}
        if backwards:
            _log.warning("consumer group %s: not committed backwards (stored, refused): %s", self._group, backwards)
        request = [ConsumerGroupTopicPartitions(self._group, [TopicPartition(self._topic, *kv) for kv in kept.items()])]
        futures = self._admin.client.alter_consumer_group_offsets(request, request_timeout=self._admin.timeout)
        what = f"commit the offsets of consumer group {self._group!r}"
        self._raise_for(self._admin.wait(futures[self._group], what).topic_partitions, what)
        return kept

    def close(self) -> None:
        """See OffsetStore."""
        del self._admin

    def _raise_for(self, answer: list[TopicPartition], what: str) -> None:
        """An answer holds an error of its own for each Kafka partition, and is no exception as a whole."""
        for failed in answer:
            if failed.error is None:
                continue
            if failed.error.code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP):
                raise BusyError(
                    f"cannot {what}: somebody consumes under it; stop that consumer, or give the pipeline its own group"
                )
            raise self._admin.explain(failed.error, f"{what} for {self._topic!r}, Kafka partition {failed.partition}")
