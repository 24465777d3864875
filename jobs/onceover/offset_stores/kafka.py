"""Offsets kept where Kafka's own tools look for them: committed under a consumer group."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, sleep

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from onceover.config.kafka_properties import build_client_properties
from onceover.errors import BusyError, OnceoverError
from onceover.kafka.client import TIMEOUT_SECONDS, LastComplaint, explain, translate_refusal
from onceover.kafka.rights import DENIED, Right
from onceover.offset_stores.store import OffsetStore, StoredOffsets

_MOVING = {  # the group's coordinator is: after a broker's restart, or in a cluster that never had a group
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
    KafkaError._TRANSPORT,
}
_PAUSE_SECONDS = 0.1
_POLL_SECONDS = 0.0002  # between polls: an answer does not end a waiting poll


class KafkaOffsetStore(OffsetStore):
    """The store `kafka`: a consumer group without members, under which no consumer ever subscribes. The format has no
    field for a topic ID, but the broker drops a deleted topic's offsets.

    The broker forgets the offsets of such a group `offsets.retention.minutes` (a week by default) after the last
    commit of a Kafka partition; committing the stored offsets again counts, and keeps those of a quiet topic.
    A commit without an answer may still arrive later, as may one of a killed process.
    """

    # The admin client could do the same, and must not: with librdkafka 2.16 its list_consumer_group_offsets takes the
    # process down while the coordinator moves (a null pointer, issue 5040), its alter_consumer_group_offsets does so
    # when an answer comes after the deadline (an assertion), and never finds a restarted coordinator again. A
    # consumer's synchronous commit has no deadline: hence the one with a callback.

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        properties: Mapping[str, str],
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.place = f"consumer group {group}, topic {topic}"
        self._bootstrap, self._properties = bootstrap, properties
        self._topic = topic
        self._group = group
        self._timeout = timeout
        self._complaint = LastComplaint()
        self._answers: list[tuple[KafkaError | None, list[TopicPartition]]] = []
        self._unanswered = False
        try:
            self._consumer = Consumer(
                {
                    **build_client_properties(bootstrap, properties),
                    "socket.timeout.ms": str(int(timeout * 1000)),
                    "group.id": group,
                    "enable.auto.commit": "false",
                    "error_cb": self._complaint,
                    "on_commit": lambda error, committed: self._answers.append((error, committed)),
                }
            )
        except KafkaException as error:
            raise translate_refusal(error) from error

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        keys = [TopicPartition(self._topic, p) for p in sorted(set(kafka_partitions))]
        if not keys:
            return StoredOffsets()
        answer = self._retry(lambda seconds: self._consumer.committed(keys, timeout=seconds), "load")
        return StoredOffsets({p.partition: p.offset for p in answer if p.offset >= 0})

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore. Raises BusyError while a consumer is a member of this group."""
        if offsets:
            state = [TopicPartition(self._topic, p, offset) for p, offset in sorted(offsets.items())]
            self._retry(lambda seconds: self._commit(state, seconds), "commit")

    def close(self) -> None:
        """See OffsetStore."""
        if not self._unanswered:  # closing would wait for the answer
            self._consumer.close()

    def _commit(self, state: list[TopicPartition], seconds: float) -> list[TopicPartition]:
        deadline = monotonic() + seconds
        self._answers.clear()
        self._consumer.commit(offsets=state, asynchronous=True)
        expected = _as_pairs(state)
        while monotonic() < deadline:
            self._consumer.poll(0)
            for error, committed in self._answers:
                if _as_pairs(committed) == expected:  # not a late answer to an earlier commit
                    if error is not None:
                        raise KafkaException(error)
                    return committed
            sleep(_POLL_SECONDS)
        if not self._unanswered:  # freeing a client waits for its answer: this one is never freed
            self._unanswered = True
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._consumer))
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def _retry(self, call: Callable[[float], list[TopicPartition]], verb: str) -> list[TopicPartition]:
        """Return the call's answer, retried while the coordinator moves, within the timeout in all."""
        deadline = monotonic() + self._timeout
        while True:
            try:
                answer = call(max(_PAUSE_SECONDS, deadline - monotonic()))
                for failed in (p.error for p in answer if p.error is not None):
                    raise KafkaException(failed)
                return answer
            except KafkaException as error:
                failure: KafkaError = error.args[0]
                if failure.code() not in _MOVING or monotonic() > deadline:
                    raise self._explain(failure, verb) from error
            sleep(_PAUSE_SECONDS)

    def _explain(self, failure: KafkaError, verb: str) -> OnceoverError:
        # A call waits for a coordinator, to its end, also where the broker denies this client to know it.
        for said in iter(lambda: self._consumer.poll(0), None):  # delivers librdkafka's last errors
            if (reported := said.error()) is not None and reported.code() in DENIED:
                failure = reported
        what = f"{verb} the offsets of consumer group {self._group!r} for topic {self._topic!r}"
        if failure.code() == KafkaError.UNKNOWN_MEMBER_ID:
            return BusyError(
                f"cannot {what}: the group has an active consumer; stop it, or give the pipeline its own group"
            )
        is_group = failure.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        right = Right("Read", self._group, "group") if is_group else Right("Read", self._topic)
        advice = right.advise(self._bootstrap, self._properties)
        return explain(failure, what, self._bootstrap, self._timeout, self._complaint, advice)


def _as_pairs(offsets: list[TopicPartition]) -> list[tuple[int, int]]:
    return sorted((p.partition, p.offset) for p in offsets)
