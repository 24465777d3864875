"""Notes how long Kafka keeps the topic's records, while ingest runs: a person may change it, and so does its pace."""

from __future__ import annotations

import logging
import time
from typing import Final

from onceover.errors import OnceoverError
from onceover.kafka import Topic, TopicFacts
from onceover.ledger.catalog import keep_log_retention
from onceover.ledger.database import Connection
from onceover.ledger.log_limits import estimate_retention

log = logging.getLogger(__name__)
INTERVAL_SECONDS: Final = 60.0


class LogRetention:
    """The retention of one pipeline's topic, by its age or by its size, whichever ends first."""

    def __init__(self, connection: Connection, pipeline: str, topic: Topic) -> None:
        self._connection, self._pipeline, self._topic = connection, pipeline, topic
        self._due = time.monotonic()
        self._problem = ""

    def note(self, facts: TopicFacts) -> None:
        """Note it in the ledger, once in a while; report once that it cannot be read."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + INTERVAL_SECONDS
        try:
            policy = self._topic.policy()
        except OnceoverError as error:  # only metrics, lists and their alerts need it
            if str(error) != self._problem:
                log.warning("cannot read how long Kafka keeps the topic's log: %s", error)
            self._problem = str(error)
            return
        lasts = [policy.retention_ms]
        if policy.retention_bytes is not None:
            seconds = estimate_retention(self._connection, self._pipeline, policy.retention_bytes, facts)
            lasts.append(None if seconds is None else round(seconds * 1000))
        keep_log_retention(self._connection, self._pipeline, min((ms for ms in lasts if ms is not None), default=None))
