"""Offsets kept where Kafka's own tools look for them: committed under a consumer group."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, sleep

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from onceover.config.kafka_properties import client_properties
from onceover.errors import BusyError, OnceoverError
from onceover.kafka.client import TIMEOUT_SECONDS, LastComplaint, explain, refused_properties
from onceover.offset_stores.store import StoredOffsets

_MOVING = {  # the group's coordinator is: after a broker's restart, or in a cluster that never had a group
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
    KafkaError._TRANSPORT,
}
_PAUSE_SECONDS = 0.1
_POLL_SECONDS = 0.0002  # between two looks for an answer, which does not end a poll by itself


class KafkaOffsetStore:
    """An OffsetStore in a consumer group that has no members: nobody ever subscribes under it. The format has no place
    for a topic ID, but the broker drops a deleted topic's offsets.

    The broker forgets the offsets of such a group `offsets.retention.minutes` (a week by default) after the last
    commit of a Kafka partition; committing again what is stored counts as a commit, and keeps a quiet topic's.
    A commit that failed for want of an answer may still arrive later, as one of a killed process may.
    """

    in_ledger = False

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
        self._bootstrap = bootstrap
        self._topic = topic
        self._group = group
        self._timeout = timeout
        self._complaint = LastComplaint()
        self._answers: list[tuple[KafkaError | None, list[TopicPartition]]] = []
        self._unanswered = False
        try:
            self._consumer = Consumer(
                {
                    **client_properties(bootstrap, properties),
                    "socket.timeout.ms": str(int(timeout * 1000)),
                    "group.id": group,
                    "enable.auto.commit": "false",
                    "error_cb": self._complaint,
                    "on_commit": lambda error, committed: self._answers.append((error, committed)),
                }
            )
        except KafkaException as error:
            raise refused_properties(error) from error

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        asked = [TopicPartition(self._topic, p) for p in sorted(set(kafka_partitions))]
        if not asked:
            return StoredOffsets()
        answer = self._patiently(lambda seconds: self._consumer.committed(asked, timeout=seconds), "load")
        return StoredOffsets({p.partition: p.offset for p in answer if p.offset >= 0})

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore. Raises BusyError while somebody consumes under this group."""
        if offsets:
            asked = [TopicPartition(self._topic, p, offset) for p, offset in sorted(offsets.items())]
            self._patiently(lambda seconds: self._commit(asked, seconds), "commit")

    def close(self) -> None:
        """See OffsetStore."""
        if not self._unanswered:  # it would wait for the answer
            self._consumer.close()

    def _commit(self, asked: list[TopicPartition], seconds: float) -> list[TopicPartition]:
        deadline = monotonic() + seconds
        self._answers.clear()
        self._consumer.commit(offsets=asked, asynchronous=True)
        wanted = _plain(asked)
        while monotonic() < deadline:
            self._consumer.poll(0)
            for error, committed in self._answers:
                if _plain(committed) == wanted:  # and not an earlier one's, which came late
                    if error is not None:
                        raise KafkaException(error)
                    return committed
            sleep(_POLL_SECONDS)
        if not self._unanswered:  # freeing a client that waits for an answer would wait too: this one is never freed
            self._unanswered = True
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._consumer))
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def _patiently(self, ask: Callable[[float], list[TopicPartition]], verb: str) -> list[TopicPartition]:
        """The answer, asked for again while the coordinator moves, within the timeout in all."""
        deadline = monotonic() + self._timeout
        while True:
            try:
                answer = ask(max(_PAUSE_SECONDS, deadline - monotonic()))
                for failed in (p.error for p in answer if p.error is not None):
                    raise KafkaException(failed)
                return answer
            except KafkaException as error:
                failure: KafkaError = error.args[0]
                if failure.code() not in _MOVING or monotonic() > deadline:
                    raise self._explain(failure, verb) from error
            sleep(_PAUSE_SECONDS)

    def _explain(self, failure: KafkaError, verb: str) -> OnceoverError:
        self._consumer.poll(0)  # delivers what librdkafka has to say
        what = f"{verb} the offsets of consumer group {self._group!r} for topic {self._topic!r}"
        if failure.code() == KafkaError.UNKNOWN_MEMBER_ID:
            return BusyError(
                f"cannot {what}: somebody consumes under it; stop that consumer, or give the pipeline its own group"
            )
        return explain(failure, what, self._bootstrap, self._timeout, self._complaint)


def _plain(offsets: list[TopicPartition]) -> list[tuple[int, int]]:
    return sorted((p.partition, p.offset) for p in offsets)
