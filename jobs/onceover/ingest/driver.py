"""The ingest loop: one batch after another by the batch protocol, under a driver's epoch, until it is stopped.

A crash after any step is legal. Each step leaves something behind, which the next driver or detection catches:
  begun              a begun batch of a dead epoch: superseded by the next driver
  appended           lines that no landing accounts for: the replay lands them again, `unaccounted bytes`
  incremented        as above, and the replay counts them twice: `aggregate mismatch`
  landed             the replay lands and counts the same offsets again: `duplicated`
  offsets_committed  nothing but a missing time of commit: the batch counts and is not read again
  committed          nothing
The transactional sink lands what it increments in one transaction, and what has landed is not read again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial, reduce

from onceover.errors import (
    BatchTooLargeError,
    FencedError,
    OffsetRangeError,
    OnceoverError,
    PoisonRecordError,
    RegistryAwayError,
    SparkLostError,
    TransientError,
    UnreadableRecordError,
)
from onceover.fault_points import FaultPoint, Step
from onceover.ingest.batch_steps import BatchResult, append_and_stage
from onceover.ingest.log_retention import LogRetention
from onceover.ingest.poison_suspects import SuspectRanges
from onceover.ingest.read_again import append_damage, list_readable
from onceover.ingest.report import Progress
from onceover.ingest.scheduler import Submissions
from onceover.ingest.schema_news import SchemaNews
from onceover.ingest.schema_waits import SchemaWaits
from onceover.ingest.sinks import SINKS
from onceover.ingest.starts import ReadPositions
from onceover.ingest.stopped_partitions import StoppedPartitions
from onceover.ingest.unreadable_ranges import UnreadableRanges
from onceover.kafka import Topic, TopicFacts
from onceover.kafka.reader import KafkaSource
from onceover.ledger import batches, drivers, landed_offsets
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection, DatabaseError
from onceover.ledger.frontiers import advance_watermark, read_progress
from onceover.ledger.log_limits import list_hidden
from onceover.ledger.read_again import ReadAgain, finish
from onceover.ledger.root import OwnedRoot
from onceover.ledger.windows import count_open_windows
from onceover.model.batch import Landing, RangeRead
from onceover.model.batch_plan import plan_read_again
from onceover.model.offsets import OffsetRange, subtract
from onceover.model.pipeline import IngestPolicy
from onceover.offset_stores.tracker import OffsetTracker
from onceover.raw.schema_files import SchemaFiles
from onceover.raw.window_files import WindowFiles
from onceover.retention import removal

log = logging.getLogger(__name__)
MAX_FAILED_ATTEMPTS = 5


class Ingest:
    """One driver of one pipeline. `append` appends a batch that it reads from the log, under the contract of that
    batch; given a window, only of that window's records."""

    def __init__(
        self,
        connection: Connection,
        epoch: drivers.Epoch,
        registered: RegisteredPipeline,
        policy: IngestPolicy,
        topic: Topic,
        offsets: OffsetTracker,
        append: Callable[[RegisteredPipeline, Sequence[OffsetRange], KafkaSource, datetime | None], BatchResult],
        files: WindowFiles,
        root: OwnedRoot,
        fault_point: FaultPoint,
        open_log: Callable[[TopicFacts], KafkaSource],
        schemas: SchemaFiles,
    ) -> None:
        self._connection, self._epoch, self._registered, self._policy = connection, epoch, registered, policy
        self._topic, self._offsets, self._append_records, self._fault_point = topic, offsets, append, fault_point
        self._files, self._open_log = files, open_log
        self._unreadable = UnreadableRanges(connection, epoch, open_log)
        self._suspects = SuspectRanges(connection, epoch, registered, open_log, schemas)
        self._waits = SchemaWaits(connection, epoch, schemas)
        self._news = SchemaNews(connection, epoch, registered, schemas)
        self._limit = self._suspects.limit
        self._sink = SINKS[policy.sink](connection, epoch)
        self._positions = ReadPositions(connection, epoch, policy, offsets, root, open_log)
        self._submissions = Submissions(topic, policy, cutovers=registered.cutovers, limit=self._limit_logs)
        self._retention = LogRetention(connection, epoch.pipeline, topic)
        self._has_read_again = False  # in the last turn
        self._seen_at = time.monotonic()
        self._uncommitted: dict[int, dict[int, int]] = {}  # landed batches whose offsets the store does not hold yet

    def run(self, stop: threading.Event, lost: threading.Event, report: Callable[[Progress], None]) -> None:
        """Run batches until `stop` is set; a batch under way is finished first. Raises FencedError when taken over.

        A failed attempt is superseded and retried after a growing pause; the fifth in a row ends the driver.
        """
        failed = 0
        while not stop.is_set():
            try:
                progress = self.turn()
                failed = 0
            except (TransientError, OffsetRangeError, DatabaseError) as error:
                # A deadlock or a lock's timeout on a healthy connection is a failed attempt like any other, and so is
                # a range of which the log dropped records after it was planned.
                failed += 1
                if self._connection.broken or failed >= MAX_FAILED_ATTEMPTS:
                    raise
                log.warning("attempt %d of %d failed: %s", failed, MAX_FAILED_ATTEMPTS, error)
                stop.wait(min(2.0**failed, 30.0))
                continue
            if lost.is_set():
                raise drivers.fenced_error(self._epoch)
            report(progress)
            if not self._has_read_again:
                self._submissions.wait(stop)

    def turn(self, *, only_again: bool = False) -> Progress:
        """Take one batch through all its steps, if there is something to read: offsets of holes and the next batch in
        line by turns, so that neither kind waits for the last of the other. Damage of one window is read again before.

        Never waits: the topic's facts must be fresh, or records that arrived during the wait would not keep their
        window open.
        """
        progress = self._take_turn(only_again)
        drivers.report_progress(self._connection, self._epoch)
        return progress

    def _take_turn(self, only_again: bool) -> Progress:
        batches.supersede_own(self._connection, self._epoch)
        self._commit_offsets()
        self._expire_raw()
        self._seen_at = time.monotonic()
        facts = self._topic.facts()
        self._retention.note(facts)
        at = self._positions.find(facts)
        self._unreadable.look(facts, at)  # before anything is read: a reader might die of it
        self._suspects.look(facts, at)
        self._waits.look(facts, at)
        readable = list_readable(self._connection, self._epoch, facts)
        if damage := next((each for each in readable if not each.is_hole), None):
            append_damage(self._connection, self._epoch, self._registered, facts, damage, self._append)
        again = self._choose_read_again([each for each in readable if each.is_hole], facts)
        is_turn_of_holes = only_again or (bool(again) and not self._has_read_again)
        submitted = None if is_turn_of_holes else self._submissions.next(facts, at, self._read_bounds(facts, at))
        self._has_read_again = bool(again) and submitted is None
        if submitted is None:
            return self._run_batch(again, facts) if again else self._report(None, facts, time.monotonic())
        with self._submissions.track(submitted) as waited:
            progress = self._run_batch(submitted.ranges, facts, waited)
        return replace(progress, waited_seconds=waited, waiting=self._submissions.waiting, rate=submitted.rate)

    def _limit_logs(self, facts: TopicFacts) -> TopicFacts:
        return reduce(lambda left, stopped: stopped.limit(left), self._list_stopped(), facts)

    def _list_stopped(self) -> list[StoppedPartitions]:
        return [self._unreadable.stopped, self._suspects.stopped, self._waits.stopped]

    def _append(
        self, registered: RegisteredPipeline, ranges: Sequence[OffsetRange], facts: TopicFacts, only: datetime | None
    ) -> BatchResult:
        source = replace(self._open_log(facts), one_batch_a_fetch=self._unreadable.is_careful(ranges))
        return self._append_records(self._suspects.add_poison(registered, ranges), ranges, source, only)

    def _expire_raw(self) -> None:
        try:
            removal.carry_out(self._connection, self._epoch, self._files)
        except FencedError:
            raise
        except OnceoverError as error:  # no reason to stop reading: the next turn retries
            log.warning("cannot delete expired raw, retrying with the next batch: %s", error)

    def _choose_read_again(self, holes: Sequence[ReadAgain], facts: TopicFacts) -> tuple[OffsetRange, ...]:
        """Return ranges of one contract to read again, together no more than a fresh batch may read."""
        held = [each.offsets for each in holes]
        if landed := self._positions.list_landed(held):  # since the holes were requested
            done = [each for each in holes if not subtract([each.offsets], landed)]
            finish(self._connection, self._epoch, done, refused_why="it has landed meanwhile")
            held = list(subtract(held, landed))
        free = reduce(lambda left, stopped: stopped.leave_out(left), self._list_stopped(), tuple(held))
        chosen = plan_read_again(free, self._submissions.most)
        return next(iter(self._registered.cutovers.cut_by_version(chosen).values()), ())

    def _read_bounds(self, facts: TopicFacts, at: Mapping[int, int]) -> Mapping[int, Sequence[int]]:
        return landed_offsets.read_landed_bounds(self._connection, self._epoch.pipeline, facts.generation, at)

    def _run_batch(self, ranges: Sequence[OffsetRange], facts: TopicFacts, waited: float | None = None) -> Progress:
        """Carry out steps 2 to 7; offsets in the ledger share step 5's transaction.

        The batch was submitted `waited` seconds ago; None for holes, which move no stored offset: the store is past
        them. A batch too large for its tasks is begun again with half of its offsets, before anything is appended.
        """
        while True:
            clipped = self._limit.clip(self._suspects.clip(ranges))
            try:
                progress = self._run_attempt(clipped, facts, waited)
            except BatchTooLargeError as error:
                self._limit.halve(clipped, str(error))
                batches.supersede_own(self._connection, self._epoch)
            except RegistryAwayError as error:
                batches.supersede_own(self._connection, self._epoch)
                self._waits.hold(facts, error)
                return self._report(None, facts, time.monotonic())
            except (UnreadableRecordError, PoisonRecordError) as error:
                batches.supersede_own(self._connection, self._epoch)
                is_unreadable = isinstance(error, UnreadableRecordError) and self._unreadable.find(clipped, facts)
                if is_unreadable or self._suspects.blame(clipped, str(error)):
                    return self._report(None, facts, time.monotonic())
                if sum(map(len, clipped)) == 1:
                    raise
                self._limit.halve(clipped, str(error))
            except SparkLostError as error:
                self._suspects.hold(clipped, str(error))
                raise
            else:
                self._limit.relax(clipped)
                self._suspects.note_landed(clipped)
                self._news.tell()
                return progress

    def _run_attempt(self, ranges: Sequence[OffsetRange], facts: TopicFacts, waited: float | None) -> Progress:
        connection, epoch, started = self._connection, self._epoch, time.monotonic()
        registered = self._registered.select_ranges(ranges)
        batch_id = batches.begin(connection, epoch, registered.contract_version, ranges, waited, self._policy.sink)
        self._fault_point.stop_after(Step.BEGUN)
        append = partial(self._append, registered, ranges, facts, None)
        staged = append_and_stage(connection, registered, batch_id, append, self._fault_point)
        read, landings = staged.result.read, staged.result.landings
        ends = {} if waited is None else {r.source.kafka_partition: r.end for r in ranges}
        fresh = self._positions.leave_fresh(ranges)

        def land() -> None:
            batches.land_batch(connection, epoch, batch_id, read, landings, fresh)
            if self._offsets.store.in_ledger:
                self._offsets.commit(ends)
                batches.mark_committed(connection, epoch, batch_id)

        self._sink.write(staged, land, self._fault_point)
        self._fault_point.stop_after(Step.LANDED)
        if self._offsets.store.in_ledger:
            for step in (Step.OFFSETS_COMMITTED, Step.COMMITTED):
                self._fault_point.stop_after(step)
        else:
            self._uncommitted[batch_id] = ends
            self._commit_offsets()
        return self._report(batch_id, facts, started, read, landings, append_seconds=staged.appended_at - started)

    def _commit_offsets(self) -> None:
        """Carry out steps 6 and 7. If the store does not answer, the next turn retries; landed batches stay landed."""
        for batch_id, ends in list(self._uncommitted.items()):
            drivers.beat(self._connection, self._epoch)
            self._offsets.commit(ends)
            self._fault_point.stop_after(Step.OFFSETS_COMMITTED)
            batches.mark_committed(self._connection, self._epoch, batch_id)
            self._fault_point.stop_after(Step.COMMITTED)
            del self._uncommitted[batch_id]

    def _report(
        self,
        batch_id: int | None,
        facts: TopicFacts,
        started: float,
        read: Sequence[RangeRead] = (),
        landings: Sequence[Landing] = (),
        *,
        append_seconds: float = 0.0,
    ) -> Progress:
        connection, epoch, policy = self._connection, self._epoch, self._policy
        lateness, idle = (timedelta(milliseconds=ms) for ms in (policy.allowed_lateness_ms, policy.idle_after_ms))
        seen_ago = timedelta(seconds=time.monotonic() - self._seen_at)
        moment, every = advance_watermark(connection, epoch, facts.generation, lateness, idle, seen_ago=seen_ago)
        frontiers = read_progress(connection, epoch.pipeline, facts.generation)
        return Progress(
            batch_id=batch_id,
            records=sum(piece.digest.records for piece in read),
            quarantined=sum(x.digest.records for x in landings if x.quarantine_day is not None),
            in_quarantine=tuple(x for x in landings if x.quarantine_day is not None),
            windows=len({x.window_start for x in landings if x.window_start is not None}),
            append_seconds=append_seconds,
            total_seconds=time.monotonic() - started,
            lag={p.kafka_partition: max(0, facts.log_end(p.kafka_partition) - to) for p, (_, to) in frontiers.items()},
            watermark=moment,
            every_window_closed=every,
            open_windows=count_open_windows(connection, epoch.pipeline),
            hidden=list_hidden(connection, epoch.pipeline, facts.generation),
            searched=self._suspects.stopped.ranges,
        )
