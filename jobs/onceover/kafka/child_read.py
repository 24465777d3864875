"""What a process that reads for another, and may die of what it reads, is asked and how it ends."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from dataclasses import asdict, dataclass, replace
from typing import Final

from onceover.errors import UnreadableRecordError
from onceover.kafka.memory_limit import MAX_PROBE_BYTES, limit_memory
from onceover.kafka.reader import KafkaSource

UNREADABLE: Final = 3
"""The code to exit with if the next offset cannot be read."""
OTHER: Final = 4
"""The code to exit with if reading ended for another reason: Kafka does not answer, or does not hold the range."""
TOO_LARGE: Final = "its batch decompresses to more than a reader has memory for"
_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Asked:
    """The offsets of one Kafka partition to read, a batch of Kafka's at a time."""

    source: KafkaSource
    kafka_partition: int
    start: int
    end: int

    def write(self) -> str:
        """Return the text for the process's standard input."""
        source = asdict(replace(self.source, one_batch_a_fetch=True, unreadable=()))
        return json.dumps({"source": source, "read": [self.kafka_partition, self.start, self.end]})


def take_request() -> Asked:
    """Return what standard input asks of this process, and bound its memory."""
    asked = json.load(sys.stdin)
    limit_memory(MAX_PROBE_BYTES)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return Asked(KafkaSource(**asked["source"]), *asked["read"])


def build_environment() -> dict[str, str]:
    """Return the environment of a process that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def choose_exit_code(error: BaseException) -> int:
    """Return the code to exit with after this error."""
    return UNREADABLE if isinstance(error, UnreadableRecordError | MemoryError) else OTHER


def is_death(code: int, log: str) -> bool:
    """Return whether a process died of what it read: a person's or a service manager's signal says nothing of that."""
    return (code < 0 and -code not in _STOPS) or "MemoryError" in log
