"""Drivers: a pipeline's one writer holds an epoch, by compare-and-set and heartbeat, on the database's clock."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from onceover import __version__
from onceover.config.endpoints import address
from onceover.errors import BusyError, FencedError, OnceoverError
from onceover.ledger.database import Connection, connect

log = logging.getLogger(__name__)

LEASE_SECONDS = 6.0
HEARTBEAT_SECONDS = LEASE_SECONDS / 4
RESTART_MINUTES = 5
"""A supervisor starts a process again within that time: its longest pause, and Spark's start."""
STATE_OF_DRIVER: Final = """
CASE WHEN d.expires_at >= clock_timestamp() THEN 'alive' WHEN d.expires_at > '-infinity' THEN 'dead' ELSE 'stopped' END
"""
"""SQL: the state of a pipeline's driver, from its newest row `d` of onceover.driver, NULL where it never had one."""
UNKNOWN_VERSION: Final = "unknown"
"""Of the Spark that evaluated what a rebuild of the ledger found in raw."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """One driver's right to write for a pipeline, until the ledger has another holder. A restored ledger counts the
    same `number` again, but never gives the same `holder`."""

    pipeline: str
    number: int
    holder: UUID


def name_process(purpose: str = "") -> str:
    """Name this process as a driver's owner, with its purpose if that is not ingest."""
    return f"{socket.gethostname()}:{os.getpid()}" + (f" ({purpose})" if purpose else "")


def knows_driver(connection: Connection, pipeline: str, holder: UUID) -> bool:
    """Return whether this ledger gave that driver its epoch."""
    known = connection.execute("SELECT 1 FROM onceover.driver WHERE holder = %s AND pipeline = %s", [holder, pipeline])
    return known.fetchone() is not None


def refuse_second_driver(connection: Connection, pipeline: str) -> None:
    """Raise BusyError as soon as another driver's heartbeat is seen; return after 1.75 heartbeats without one.

    A second driver is thus refused before it starts Spark. Only `acquire` decides.
    """
    first: datetime | None = None
    for _ in range(7):  # 1.75 heartbeats
        row = connection.execute(
            "SELECT owner, epoch, heartbeat_at FROM onceover.driver "
            "WHERE pipeline = %s AND superseded_at IS NULL AND expires_at >= clock_timestamp()",
            [pipeline],
        ).fetchone()
        if row is None:
            return
        first = first or row["heartbeat_at"]
        if row["heartbeat_at"] != first:
            raise _busy(pipeline, row)
        time.sleep(HEARTBEAT_SECONDS / 4)


def acquire(connection: Connection, pipeline: str, owner: str) -> Epoch:
    """Become the pipeline's driver. Raises BusyError while another driver's heartbeat is fresh. A lease that ends later
    than any begun now was taken before the clock went back, and holds up no driver until the clock is there again.

    A driver that follows another within minutes has made no more progress than that one: else a process that fails and
    is started again, for ever, would look as if it worked.

    The same transaction supersedes the old epochs' batches that are begun but not landed: they can never count. Landed
    batches stay landed for ever.
    """
    with connection.transaction():
        # Waits for transactions under the old epoch, which hold the row FOR KEY SHARE; that does not block heartbeats.
        last = connection.execute(
            """
            SELECT holder, owner, epoch, expires_at BETWEEN clock_timestamp()
              AND clock_timestamp() + make_interval(secs => %s) AS lives
            FROM onceover.driver WHERE pipeline = %s AND superseded_at IS NULL FOR UPDATE
            """,
            [LEASE_SECONDS, pipeline],
        ).fetchone()
        if last and last["lives"]:
            raise _busy(pipeline, last)
        row = connection.execute(
            """
            WITH last AS (
              UPDATE onceover.driver SET superseded_at = clock_timestamp() WHERE holder = %(last)s RETURNING *)
            INSERT INTO onceover.driver (pipeline, owner, epoch, expires_at, progress_at)
            SELECT %(pipeline)s, %(owner)s, coalesce(epoch, 0) + 1,
              clock_timestamp() + make_interval(secs => %(lease)s),
              CASE WHEN heartbeat_at > clock_timestamp() - make_interval(mins => %(soon)s)
                THEN progress_at ELSE clock_timestamp() END
            FROM (VALUES (1)) one LEFT JOIN last ON true
            ON CONFLICT DO NOTHING RETURNING epoch, holder
            """,
            {"pipeline": pipeline, "owner": owner, "last": last["holder"] if last else None, "lease": LEASE_SECONDS,
             "soon": RESTART_MINUTES},
        ).fetchone()  # fmt: skip
        if row is None:  # another one took over while this one waited
            raise _busy(pipeline, None)
        epoch = Epoch(pipeline, row["epoch"], row["holder"])
        supersede_begun(connection, pipeline)
    return epoch


def supersede_begun(connection: Connection, pipeline: str, batch_id: int | None = None) -> int:
    """Supersede the pipeline's batches that have begun and not landed, or this one alone, in the transaction that holds
    its driver's row: they never count. Returns their number."""
    return connection.execute(
        "UPDATE onceover.batch SET state = 'superseded' "
        "WHERE pipeline = %s AND state = 'begun' AND coalesce(batch_id = %s, true)",
        [pipeline, batch_id],
    ).rowcount


def record_versions(connection: Connection, epoch: Epoch, spark_version: str, zone_data: str) -> None:
    """Record by which code and which Spark, with which time zone data, this driver's records are evaluated."""
    connection.execute(
        "UPDATE onceover.driver SET code_version = %s, spark_version = %s, zone_data = %s WHERE holder = %s",
        [__version__, spark_version, zone_data, epoch.holder],
    )


def has_other_versions(connection: Connection, epoch: Epoch) -> bool:
    """Return whether other code, another Spark or other time zone data evaluated earlier records of the pipeline, or
    may have, before its ledger was rebuilt."""
    row = connection.execute(
        """
        SELECT 1 FROM onceover.driver e JOIN onceover.driver own ON own.holder = %s
        WHERE e.pipeline = own.pipeline AND e.spark_version IS NOT NULL
          AND (e.code_version, e.spark_version, e.zone_data)
            IS DISTINCT FROM (own.code_version, own.spark_version, own.zone_data) LIMIT 1
        """,
        [epoch.holder],
    ).fetchone()
    return row is not None


def list_java_zone_data(connection: Connection, pipeline: str) -> list[str]:
    """Return the releases of Java's time zone data by which the pipeline's records were evaluated, in order."""
    rows = connection.execute(
        "SELECT DISTINCT zone_data FROM onceover.driver WHERE pipeline = %s AND zone_data IS NOT NULL ORDER BY 1",
        [pipeline],
    )
    return [row["zone_data"] for row in rows]


def is_alive(connection: Connection, pipeline: str) -> bool:
    """Return whether a driver of the pipeline holds its lease."""
    row = connection.execute(
        "SELECT 1 FROM onceover.driver "
        "WHERE pipeline = %s AND superseded_at IS NULL AND expires_at >= clock_timestamp()",
        [pipeline],
    ).fetchone()
    return row is not None


def beat(connection: Connection, epoch: Epoch) -> None:
    """Record the driver's heartbeat. Raises FencedError once the ledger has another epoch."""
    row = connection.execute(
        """
        UPDATE onceover.driver SET heartbeat_at = clock_timestamp(),
          expires_at = clock_timestamp() + make_interval(secs => %s)
        WHERE holder = %s AND superseded_at IS NULL RETURNING epoch
        """,
        [LEASE_SECONDS, epoch.holder],
    ).fetchone()
    if row is None:
        raise fenced_error(epoch)


def report_progress(connection: Connection, epoch: Epoch) -> None:
    """Record that a turn of the driver's loop ended well; the heartbeat says only that its process lives. Raises
    FencedError once the ledger has another epoch."""
    done = connection.execute(
        "UPDATE onceover.driver SET progress_at = clock_timestamp() WHERE holder = %s AND superseded_at IS NULL",
        [epoch.holder],
    )
    if done.rowcount != 1:
        raise fenced_error(epoch)


def end_epoch(connection: Connection, epoch: Epoch) -> None:
    """Expire the driver's lease, so that the next driver can start at once. An old epoch's is over as it is."""
    connection.execute("UPDATE onceover.driver SET expires_at = '-infinity' WHERE holder = %s", [epoch.holder])


def require_epoch(connection: Connection, epoch: Epoch) -> None:
    """Hold the epoch until the open transaction ends; a takeover waits for that. Raises FencedError for an old one."""
    row = connection.execute(
        "SELECT 1 FROM onceover.driver WHERE holder = %s AND superseded_at IS NULL FOR KEY SHARE", [epoch.holder]
    ).fetchone()
    if row is None:
        raise fenced_error(epoch)


def fenced_error(epoch: Epoch) -> FencedError:
    return FencedError(
        f"pipeline {epoch.pipeline} was taken over: epoch {epoch.number} is no longer current; this driver stops "
        "and has changed nothing since"
    )


def _busy(pipeline: str, holder: Mapping[str, object] | None) -> BusyError:
    shown = f"{holder['owner']} (epoch {holder['epoch']})" if holder else "another driver"
    return BusyError(
        f"pipeline {pipeline} has a driver already, {shown}; stop that one first, or wait {LEASE_SECONDS:.0f} s after "
        "it died"
    )


class Heartbeat:
    """A thread that records heartbeats while the driver works; `lost` is set once another epoch is current."""

    def __init__(self, address: str, epoch: Epoch) -> None:
        self._address, self._epoch = address, epoch
        self._stop = threading.Event()
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _beat(self) -> None:
        while not self._stop.is_set():
            try:
                with connect(self._address, "onceover heartbeat") as connection:
                    while not self._stop.wait(HEARTBEAT_SECONDS):
                        beat(connection, self._epoch)
            except FencedError as error:
                log.error("%s", error)
                self.lost.set()
                return
            except OnceoverError as error:
                # A short outage of the database is no reason to stop; the epoch decides who may write.
                log.warning("heartbeat: %s", error)
                self._stop.wait(HEARTBEAT_SECONDS)


@contextmanager
def as_driver(ledger: Connection, pipeline: str, owner: str) -> Iterator[Epoch]:
    """Be the pipeline's driver within the block. Raises BusyError while another driver's heartbeat is fresh."""
    epoch = acquire(ledger, pipeline, owner)
    try:
        with Heartbeat(address("postgres"), epoch):
            yield epoch
    finally:
        end_epoch(ledger, epoch)
