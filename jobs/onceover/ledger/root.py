"""Whose a pipeline's raw root is: the check before each write, the driver's markers, and a person's takeover.

A marker is written before what it protects: before a generation or Kafka partition is registered, its origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from psycopg import sql

from onceover.errors import BusyError, TerminalError, UsageError
from onceover.ledger import drivers
from onceover.ledger.actions import record_action
from onceover.ledger.database import Connection, locate_server, read_identity
from onceover.ledger.frontiers import read_origins
from onceover.model.offsets import KafkaPartition
from onceover.model.root_marker import DriverMark, RootMarker, join_origins
from onceover.model.root_ownership import RootFacts, RootProblem, judge_root
from onceover.model.window import format_moment

if TYPE_CHECKING:  # the HDFS client takes 0.2 s, which a command without files need not pay
    from onceover.raw.marker import MarkerFiles, StoredMarker
    from onceover.raw.window_files import WindowFiles


class RootRefusedError(TerminalError):
    """A raw root that this ledger may not write below until a person says otherwise."""

    def __init__(self, problem: RootProblem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Root:
    """One pipeline's raw root beside the ledger at `connection`. Reads nothing before it is asked."""

    connection: Connection
    pipeline: str
    files: WindowFiles
    markers: MarkerFiles
    raw_store: str = "hdfs"

    @property
    def path(self) -> str:
        return f"{self.files.layout.raw_root}/{self.pipeline}"

    def read_store(self) -> str:
        """Return the raw store that holds the pipeline's raw, as the ledger has it; this one if nothing has landed."""
        return _read_holdings(self.connection, self.pipeline)["raw_store"] or self.raw_store

    def require_same_store(self) -> None:
        """Raise RootRefusedError if raw of the pipeline is in another raw store than this one, which holds nothing of
        it. Reads the ledger alone."""
        held = self.read_store()
        if held != self.raw_store:
            raise RootRefusedError(RootProblem.OTHER_STORE, _describe_other_store(self, held))

    def require_own(self, kafka_cluster: str | None = None) -> StoredMarker:
        """Return the newest marker, number 0 for an unused root. Raise RootRefusedError if the root may be another
        ledger's or, where a cluster is given, another cluster's."""
        stored = self.markers.read_newest()
        facts = self.read_facts(stored.marker, kafka_cluster)
        problem = judge_root(facts)
        if problem is not None:
            raise RootRefusedError(problem, describe_problem(self, facts, problem))
        return stored

    def read_facts(self, marker: RootMarker | None, kafka_cluster: str | None) -> RootFacts:
        """Return the facts that decide whose the root is."""
        holdings = _read_holdings(self.connection, self.pipeline)
        holder = marker.driver.holder if marker is not None and marker.driver is not None else None
        return RootFacts(
            marker,
            read_identity(self.connection),
            holdings["is_registered"],
            holdings["has_landed"],
            (marker is None or not holdings["has_landed"]) and self.files.holds_raw(),
            holdings["has_rows"],
            holder is not None and drivers.knows_driver(self.connection, self.pipeline, holder),
            kafka_cluster,
            None if holdings["raw_store"] in (None, self.raw_store) else holdings["raw_store"],
        )

    def claim(self, epoch: drivers.Epoch, kafka_cluster: str, who: str, why: str = "a driver started") -> OwnedRoot:
        """Mark the root with a new driver's epoch, and with every origin that the ledger has. Raise RootRefusedError as
        `require_own`, BusyError if another process wrote a marker meanwhile."""
        stored = self.require_own(kafka_cluster)
        marker = self._make_marker(stored.marker, epoch, kafka_cluster, who, why)
        drivers.beat(self.connection, epoch)
        return OwnedRoot(self, epoch, self.markers.write_next(stored, marker))

    def mark_driver(self, epoch: drivers.Epoch, who: str, why: str) -> None:
        """Mark the root with the epoch of a driver that changes files without reading Kafka, under the cluster that the
        marker names; an unused root has nothing to change. A copy of the ledger does not know that epoch, so only one
        of both goes on. Raise as `claim`."""
        stored = self.require_own()
        if stored.marker is not None:
            self.claim(epoch, stored.marker.kafka_cluster, who, why)

    def _make_marker(
        self, before: RootMarker | None, epoch: drivers.Epoch, kafka_cluster: str, who: str, why: str
    ) -> RootMarker:
        origins = [read_origins(self.connection, self.pipeline), *([before.origins] if before else ())]
        return RootMarker(
            read_identity(self.connection),
            kafka_cluster,
            DriverMark(epoch.holder, epoch.number),
            join_origins(origins),
            _now(),
            who,
            why,
        )

    def take(self, kafka_cluster: str, accepted_cluster: str | None, who: str, why: str) -> RootChange:
        """Make the root this ledger's by a person's word, kept in both, as the pipeline's driver.

        The marker names an epoch that no copy of this ledger has. Raise UsageError if the ledger has to be rebuilt
        instead, or for another Kafka cluster than `accepted_cluster` names; BusyError while a driver of this ledger
        runs.
        """
        stored = self.markers.read_newest_readable()
        facts = self.read_facts(stored.marker, kafka_cluster)
        if facts.needs_rebuild:
            raise UsageError(
                f"the ledger at {_show_database(self.connection)} has no landed batch of {self.pipeline}, so it cannot "
                f"account for raw at {self.path} on {self.files.where}; run `onceover ledger rebuild {self.pipeline}`, "
                "which takes the root as well"
            )
        if accepted_cluster not in (None, kafka_cluster):
            raise UsageError(f"--kafka-cluster {accepted_cluster}: ONCEOVER_KAFKA names cluster {kafka_cluster}")
        problem = judge_root(facts)
        if problem is RootProblem.OTHER_STORE:
            raise RootRefusedError(problem, describe_problem(self, facts, problem))
        if stored.marker and stored.marker.kafka_cluster != kafka_cluster and accepted_cluster is None:
            raise RootRefusedError(RootProblem.OTHER_CLUSTER, describe_problem(self, facts, RootProblem.OTHER_CLUSTER))
        with drivers.as_driver(self.connection, self.pipeline, f"{who} (take-root)") as epoch:
            after = self._replace_marker(stored, epoch, kafka_cluster, who, why)
        return RootChange(problem, stored.marker, after)

    def take_rebuilt(self, epoch: drivers.Epoch, kafka_cluster: str, who: str) -> None:
        """Make any ledger's root this ledger's, for a rebuild by the pipeline's driver. The cluster stays the one that
        raw was read from."""
        stored = self.markers.read_newest_readable()
        cluster = stored.marker.kafka_cluster if stored.marker else kafka_cluster
        drivers.beat(self.connection, epoch)
        self._replace_marker(stored, epoch, cluster, who, "the ledger was rebuilt from raw")

    def _replace_marker(
        self, stored: StoredMarker, epoch: drivers.Epoch, kafka_cluster: str, who: str, why: str
    ) -> RootMarker:
        after = self._make_marker(stored.marker, epoch, kafka_cluster, who, why)
        with self.connection.transaction():
            detail = {"root": self.path, "before": stored.marker, "after": after}
            record_action(self.connection, self.pipeline, "take over raw", who, why, detail)
            self.markers.write_next(stored, after)
        return after


@dataclass(frozen=True, slots=True)
class RootChange:
    """A takeover: why the root was refused before, None if it was this ledger's already, and both markers."""

    problem: RootProblem | None
    before: RootMarker | None
    after: RootMarker


class OwnedRoot:
    """A root whose marker names the driver that holds this."""

    def __init__(self, root: Root, epoch: drivers.Epoch, stored: StoredMarker) -> None:
        self._root, self._epoch, self._stored = root, epoch, stored

    def record_origins(self, origins: Mapping[KafkaPartition, int]) -> Mapping[KafkaPartition, int]:
        """Return the origin of each of these Kafka partitions: the marker's, or the given one, which is in the marker
        from now on. Raise FencedError after a takeover, RootRefusedError if the root is no longer this ledger's."""
        if self._stored.marker is None:
            raise ValueError("claim the root first")
        known = self._stored.marker.origins
        if not origins.keys() <= known.keys():
            marker = replace(
                self._stored.marker,
                origins=join_origins([{**origins, **known}]),
                written_at=_now(),
                why="a generation or Kafka partition is read for the first time",
            )
            drivers.beat(self._root.connection, self._epoch)
            try:
                self._stored = self._root.markers.write_next(self._stored, marker)
            except BusyError:
                self._stored = self._root.require_own(marker.kafka_cluster)  # the next attempt goes on from here
                raise
            known = marker.origins
        return {source: min(origin, known[source]) for source, origin in origins.items()}


def describe_problem(root: Root, facts: RootFacts, problem: RootProblem) -> str:
    """Return the problem in a sentence, with the command that leads out."""
    name, marker = root.pipeline, facts.marker
    where, ledger = f"{root.path} on {root.files.where}", f"this ledger ({_show_database(root.connection)})"
    take = f'`onceover ledger take-root {name} --reason "..."`'
    way_out = f"`onceover ledger rebuild {name}`" if facts.needs_rebuild else take
    written = f" by {marker.who} at {format_moment(marker.written_at)} ({marker.why})" if marker else ""
    match problem:
        case RootProblem.LOST_LEDGER:
            what = f"{where} holds raw" if facts.holds_raw else f"the table aggregates.{name} has rows"
            return (
                f"{what}, and {ledger} has no landed batch of {name}: it would begin at the stored offsets and certify "
                f"windows without the records before; if the ledger was lost, run {way_out}; if it is elsewhere, set "
                "ONCEOVER_POSTGRES"
            )
        case RootProblem.UNMARKED:
            return (
                f"{where} holds raw but no marker, so it may be another ledger's as well as {ledger}'s; make sure that "
                f"no other environment uses it, then run {way_out}"
            )
        case RootProblem.LOST_RAW:
            return (
                f"{where} holds neither raw nor a marker, and {ledger} has landed batches of {name}: raw is elsewhere, "
                "or lost; set the server's address, or storage.raw_root in the TOML; if raw is lost, run "
                f"{way_out}, and `onceover reread {name} WINDOW` for what Kafka still holds"
            )
        case RootProblem.OTHER_LEDGER:
            return (
                f"{where} belongs to another ledger than {ledger}: it was marked{written}; two ledgers on one root "
                "count and delete each other's files; set ONCEOVER_POSTGRES or storage.raw_root, or, once no process "
                f"uses the other ledger any more, run {way_out}"
            )
        case RootProblem.COPIED_LEDGER:
            return (
                f"{where} was marked{written}, but not by {ledger}: by a ledger of which it is a copy, or by a copy of "
                "it; two ledgers on one root count and delete each other's files; once no process uses the other one "
                f"any more, run {way_out}"
            )
        case RootProblem.RESTORED_LEDGER:
            epoch = marker.driver.epoch if marker and marker.driver else 0
            return (
                f"{where} was written by a driver, epoch {epoch}, that {ledger} does not know: the ledger was restored "
                "from an older backup, or is a clone of the one that owns the root; once no process uses any other, "
                f"run {way_out}"
            )
        case RootProblem.OTHER_STORE:
            return _describe_other_store(root, facts.other_store)
        case RootProblem.OTHER_CLUSTER:
            old, new = marker.kafka_cluster if marker else "", facts.kafka_cluster
            return (
                f"raw of {name} was read from Kafka cluster {old}, and ONCEOVER_KAFKA names cluster {new}: a mirror's "
                "topic is another generation, whose records are all counted again; set ONCEOVER_KAFKA, or, if this "
                f"cluster replaces the other for good, run `onceover ledger take-root {name} --kafka-cluster {new} "
                '--reason "..."`'
            )


def _read_holdings(connection: Connection, pipeline: str) -> Mapping[str, Any]:
    """Return what the ledger holds of the pipeline: whether it `is_registered`, whether a batch `has_landed`, the
    `raw_store` that landed batches wrote to (None before the first), and whether its aggregate table, which may outlive
    the ledger, `has_rows`."""
    (row,) = connection.execute(
        """
        SELECT p.name IS NOT NULL AS is_registered, landed AS has_landed,
          CASE WHEN landed THEN p.raw_store END AS raw_store,
          to_regclass('aggregates.' || quote_ident(%(name)s)) IS NOT NULL AS has_rows
        FROM (SELECT EXISTS (SELECT 1 FROM onceover.batch WHERE pipeline = %(name)s AND state = 'landed') AS landed) b
        LEFT JOIN onceover.pipeline p ON p.name = %(name)s
        """,
        {"name": pipeline},
    ).fetchall()
    if row["has_rows"]:
        table = sql.Identifier("aggregates", pipeline)
        row["has_rows"] = bool(connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(table)).fetchone())
    return row


def _describe_other_store(root: Root, held: str | None) -> str:
    return (
        f'raw of {root.pipeline} is in the store "{held}", and the TOML names raw_store = "{root.raw_store}": put it '
        f"back in pipelines/{root.pipeline}.toml [storage], or give the new store a pipeline of another name, which "
        "reads the topic from its beginning"
    )


def _show_database(connection: Connection) -> str:
    host, port, database = locate_server(connection)
    return f"{host}:{port}/{database}"


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
