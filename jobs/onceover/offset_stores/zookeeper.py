"""Offsets in ZooKeeper, where Kafka's own consumers once kept them: `/consumers/GROUP/offsets/TOPIC/PARTITION`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    KazooException,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from onceover.errors import BusyError, UnreachableError
from onceover.offset_stores.store import CorruptOffsetsError, StoredOffsets, parse_offset

TIMEOUT_SECONDS = 10.0
logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # it tells each try; what matters is told by what is raised here


class ZooKeeperOffsetStore:
    """See OffsetStore. One znode a Kafka partition, its offset in decimal digits, all written in one transaction.

    The znodes are persistent, so a session loses nothing by its end: whatever fails ends it, and the next call opens
    another, rather than wait for one that finds its server again in its own time. A save that failed for want of an
    answer may still arrive later, as one of a killed process may. There is no place for a topic ID.
    """

    in_ledger = False

    def __init__(self, hosts: str, group: str, topic: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._hosts, self._timeout = hosts, timeout
        self.place = f"/consumers/{group}/offsets/{topic}"
        self._client: KazooClient | None = None
        self._there: set[str] | None = None  # the znodes that there are; None: not asked yet

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        with self._explaining("read"):
            client = self._connected()
            try:
                names = self._answer(client.get_children_async(self.place))
            except NoNodeError:
                self._there = set()
                return StoredOffsets()
            reads = {name: client.get_async(f"{self.place}/{name}") for name in names}
            values = {name: self._answer(read)[0] for name, read in reads.items()}
        self._there = set(names)
        if strangers := sorted(name for name in names if not name.isdigit()):
            raise CorruptOffsetsError(f"{self.place}/{strangers[0]} in ZooKeeper is no Kafka partition")
        return StoredOffsets({int(n): parse_offset(v, f"{self.place}/{n} in ZooKeeper") for n, v in values.items()})

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore."""
        with self._explaining("write"):
            client = self._connected()
            for _ in range(2):
                if not self._there:
                    self._answer(client.ensure_path_async(self.place))
                    self._there = set(self._answer(client.get_children_async(self.place)))
                if self._written(client, offsets, self._there):
                    return
                self._there = None  # somebody else made or removed one in between: look again, once
        raise BusyError(f"{self.place} in ZooKeeper is being written by somebody else")

    def close(self) -> None:
        """See OffsetStore."""
        client, self._client, self._there = self._client, None, None
        if client is not None:
            client.stop()
            client.close()

    def _written(self, client: KazooClient, offsets: Mapping[int, int], there: set[str]) -> bool:
        change, wanted = client.transaction(), {str(p): str(offset).encode() for p, offset in offsets.items()}
        for name, value in wanted.items():
            if name in there:
                change.set_data(f"{self.place}/{name}", value)
            else:
                change.create(f"{self.place}/{name}", value)
        for name in there - wanted.keys():
            change.delete(f"{self.place}/{name}")
        failed = [answer for answer in self._answer(change.commit_async()) if isinstance(answer, Exception)]
        if any(isinstance(answer, NoNodeError | NodeExistsError) for answer in failed):
            return False
        for answer in failed:
            if not isinstance(answer, RolledBackError | RuntimeInconsistency):  # these only say that another one failed
                raise answer
        self._there = set(wanted)
        return True

    def _answer(self, asked: Any) -> Any:
        """Within the timeout: a client that lost its server would wait for ever."""
        return asked.get(timeout=self._timeout)

    def _connected(self) -> KazooClient:
        if self._client is None:
            retry = KazooRetry(max_tries=-1, max_delay=1.0)
            client = KazooClient(self._hosts, timeout=self._timeout, connection_retry=retry, read_only=False)
            try:
                client.start(timeout=self._timeout)
            except KazooTimeoutError:  # it has stopped by itself
                client.close()
                raise
            self._client = client
        return self._client

    @contextmanager
    def _explaining(self, verb: str) -> Iterator[None]:
        try:
            yield
        except SessionExpiredError as error:
            self.close()
            raise UnreachableError(
                f"ZooKeeper's session expired before it could {verb} {self.place}; the next attempt opens another"
            ) from error
        except (KazooException, KazooTimeoutError) as error:
            self.close()
            raise UnreachableError(
                f"ZooKeeper at {self._hosts} did not {verb} {self.place} ({type(error).__name__}); start it "
                "(`onceover stack up zookeeper`) or set ONCEOVER_ZOOKEEPER"
            ) from error
