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

from onceover.config.endpoints import start_or_set
from onceover.errors import BusyError, UnreachableError
from onceover.offset_stores.store import CorruptOffsetsError, OffsetStore, StoredOffsets, is_number, parse_offset

TIMEOUT_SECONDS = 10.0
logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # it logs each try; the errors raised here say what matters


class ZooKeeperOffsetStore(OffsetStore):
    """The store `zookeeper`. One znode a Kafka partition, its offset in decimal digits, all written in one transaction.

    The znodes are persistent and outlive their session: every failure ends the session, and the next call opens another
    at once, rather than wait for a reconnect. A save without an answer may still arrive later, as may one of a killed
    process. The format has no field for a topic ID.
    """

    def __init__(self, hosts: str, group: str, topic: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._hosts, self._timeout = hosts, timeout
        self.place = f"/consumers/{group}/offsets/{topic}"
        self._client: KazooClient | None = None
        self._znodes: set[str] | None = None  # the existing znodes; None: not read

    def load(self, kafka_partitions: Iterable[int]) -> StoredOffsets:
        """See OffsetStore."""
        with self._translate_errors("read"):
            client = self._connect()
            try:
                names = self._await(client.get_children_async(self.place))
            except NoNodeError:
                self._znodes = set()
                return StoredOffsets()
            reads = {name: client.get_async(f"{self.place}/{name}") for name in names}
            values = {name: self._await(read)[0] for name, read in reads.items()}
        self._znodes = set(names)
        if strangers := sorted(name for name in names if not is_number(name)):
            raise CorruptOffsetsError(f"{self.place}/{strangers[0][:80]} in ZooKeeper is not a Kafka partition")
        return StoredOffsets({int(n): parse_offset(v, f"{self.place}/{n} in ZooKeeper") for n, v in values.items()})

    def save(self, offsets: Mapping[int, int], topic_id: str) -> None:
        """See OffsetStore."""
        with self._translate_errors("write"):
            client = self._connect()
            for _ in range(2):
                if not self._znodes:
                    self._await(client.ensure_path_async(self.place))
                    self._znodes = set(self._await(client.get_children_async(self.place)))
                if self._write(client, offsets, self._znodes):
                    return
                self._znodes = None  # another writer made or removed a znode in between: retry once
        raise BusyError(
            f"{self.place} in ZooKeeper is being written by another program; stop it, or give the pipeline "
            "a group of its own"
        )

    def close(self) -> None:
        """See OffsetStore."""
        client, self._client, self._znodes = self._client, None, None
        if client is not None:
            client.stop()
            client.close()

    def _write(self, client: KazooClient, offsets: Mapping[int, int], present: set[str]) -> bool:
        change, values = client.transaction(), {str(p): str(offset).encode() for p, offset in offsets.items()}
        for name, value in values.items():
            if name in present:
                change.set_data(f"{self.place}/{name}", value)
            else:
                change.create(f"{self.place}/{name}", value)
        for name in present - values.keys():
            change.delete(f"{self.place}/{name}")
        failed = [answer for answer in self._await(change.commit_async()) if isinstance(answer, Exception)]
        if any(isinstance(answer, NoNodeError | NodeExistsError) for answer in failed):
            return False
        for answer in failed:
            if not isinstance(answer, RolledBackError | RuntimeInconsistency):  # these only say that another one failed
                raise answer
        self._znodes = set(values)
        return True

    def _await(self, answer: Any) -> Any:
        """Return the answer within the timeout: a client that lost its server would wait for ever."""
        return answer.get(timeout=self._timeout)

    def _connect(self) -> KazooClient:
        if self._client is None:
            retry = KazooRetry(max_tries=-1, max_delay=1.0)
            client = KazooClient(self._hosts, timeout=self._timeout, connection_retry=retry, read_only=False)
            try:
                client.start(timeout=self._timeout)
            except KazooTimeoutError:  # the client has stopped by itself
                client.close()
                raise
            self._client = client
        return self._client

    @contextmanager
    def _translate_errors(self, verb: str) -> Iterator[None]:
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
                f"ZooKeeper at {self._hosts} did not {verb} {self.place} ({type(error).__name__}); "
                f"{start_or_set('zookeeper')}"
            ) from error
