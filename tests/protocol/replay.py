"""A trace of the model carried out on the real ledger, by the product's own functions; Spark and HDFS are values.

The model says what raw holds. Everything else (epochs, batches, versions, claims, certificates) is the ledger's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import assert_never

import pytest
from tests.protocol import facts
from tests.protocol.facts import GENERATION, as_range, as_span, digest, digest_of, source, window_start
from tests.protocol.ingest_moves import delivered
from tests.protocol.repair_replay import RepairReplay
from tests.protocol.state import Action, Counts, Event, Scenario, State
from tests.protocol.state import Landing as ModelLanding

from onceover.detection.certify import certify_from_ledger
from onceover.detection.evidence import read_evidence
from onceover.errors import FencedError
from onceover.fault_points import RepairStep, Step
from onceover.ledger import batches, catalog, drivers, frontiers, refills, repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.database import Connection
from onceover.ledger.increments import increment, stage_name
from onceover.ledger.watermarks import advance_watermark
from onceover.model.batch import Increment, Landing, LandingPart, RangeRead
from onceover.model.batch_plan import Start
from onceover.model.contract import Column, Columns, Contract, Measure
from onceover.model.finding import Evidence, is_right, judge_window
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.pipeline import IngestPolicy, Pipeline, RepairPolicy, StoragePolicy

QUARANTINED_ON = date(2013, 1, 1)
COLUMNS = Columns((), (Column("records", "bigint", "count"), Column("code", "numeric", "sum")))


def pipeline_named(name: str) -> Pipeline:
    """A pipeline of one-minute windows without keys. `code` sums one hexadecimal digit a record, as the digest does."""
    measures = (Measure("records", "count", "*"), Measure("code", "sum", "0"))
    contract = Contract("topic", 1, "raw", "", (), "timestamp", "quarantine", (), measures, None, None)
    ingest = IngestPolicy(0, 0, 1000, 100, "kafka", "", name, "read_committed", "earliest")
    return Pipeline(name, contract, ingest, StoragePolicy("/raw"), RepairPolicy(2))


@dataclass(slots=True)
class Replay:
    """One pipeline of its own on the ledger, in step with the model."""

    connection: Connection
    scenario: Scenario
    name: str
    known: RegisteredPipeline = field(init=False)
    repairs: RepairReplay = field(init=False)
    batch_ids: list[int] = field(default_factory=list)
    landing_ids: list[int] = field(default_factory=list)
    late: set[int] = field(default_factory=set)  # landings, by the model's number, into windows that had closed
    epochs: dict[int, drivers.Epoch] = field(default_factory=dict)
    looks: list[tuple[Evidence, tuple[OffsetRange, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = catalog.register_pipeline(self.connection, pipeline_named(self.name), COLUMNS)
        self.repairs = RepairReplay(self.connection, self.scenario, self.known, self.landing_ids)
        self._take_over("epoch 1")
        self.register(self.scenario.start())

    def epoch(self, number: int) -> drivers.Epoch:
        return self.epochs[number]

    def _take_over(self, owner: str) -> drivers.Epoch:
        epoch = drivers.acquire(self.connection, self.name, owner)
        assert epoch.holder not in {held.holder for held in self.epochs.values()}  # never used twice
        self.epochs[epoch.number] = epoch
        return epoch

    def register(self, state: State) -> None:
        """Register the Kafka partitions as a plan does: the start of reading and the end of the log."""
        frontiers.register_kafka_partitions(
            self.connection,
            self.epoch(state.epoch),
            "topic",
            starts={source(p): Start(at, at) for p, at in enumerate(state.reach)},
            ends={source(p): len(log) for p, log in enumerate(self.scenario.logs)},
        )

    def watermark(self, state: State) -> None:
        """Close windows as every turn's report does."""
        no_time = facts.WINDOW - facts.WINDOW
        advance_watermark(self.connection, self.epoch(state.epoch), GENERATION, no_time, no_time)

    def follow(self, before: State, action: Action, after: State) -> None:
        """Do to the ledger what the action does to the model."""
        match action.did:
            case Step():
                self._step(action.did, action.at, before, after)
            case RepairStep():
                self.repairs.follow(action, before, after)
            case Event.TAKEN_OVER:
                drivers.end_epoch(self.connection, self.epoch(before.epoch))  # its lease has run out
                assert self._take_over("another") == self.epoch(after.epoch)
            case Event.PLANNED:
                batches.supersede_own(self.connection, self.epoch(before.drivers[action.at].epoch))
                self.register(after)
            case Event.BEATEN:
                drivers.beat(self.connection, self.epoch(before.drivers[action.at].epoch))
            case Event.FENCED:
                with pytest.raises(FencedError):
                    self._refused(before, action.at)
            case Event.CERTIFIED | Event.LOOKED:
                self._judged(action, before)
            case Event.LOOK_WRITTEN | Event.LOOK_REFUSED:
                done = self._certified(*self.looks.pop(action.at))
                assert bool(done) == (action.did is Event.LOOK_WRITTEN)
            case Event.REFILL_WANTED:
                missing = frontiers.read_holes(self.connection, self.name)
                assert tuple(map(as_span, missing)) == facts.holes(before)
                request_id = repair_requests.create_request(self.connection, self.name, "model", "a hole", {})
                refills.record_refills(self.connection, self.name, request_id, missing)
            case Event.TRY_FAILED | Event.PUBLISH_REFUSED:
                self.repairs.fail(action, before, after)
            case (
                Event.CRASHED
                | Event.ATTEMPT_FAILED
                | Event.TORN_CRASHED
                | Event.TORN_FAILED
                | Event.TORN_RETRIED
                | Event.STORE_MOVED
            ):
                pass  # the ledger learns of it later, if ever
            case Event.ROWS_ADDED | Event.ROWS_DELETED:
                raise AssertionError("only a mutant does that")
            case _:
                assert_never(action.did)

    def _step(self, step: Step, at: int, before: State, after: State) -> None:
        driver, epoch = before.drivers[at], self.epoch(before.drivers[at].epoch)
        match step:
            case Step.BEGUN:
                batch = after.batches[-1]
                assert batches.supersede_own(self.connection, epoch) == 0
                wanted = refills.list_wanted(self.connection, self.name)
                assert bool(wanted) == batch.refill
                spans = [as_range(span) for span in batch.spans]
                self.batch_ids.append(batches.begin(self.connection, epoch, 1, spans, None if batch.refill else 0.0))
            case Step.INCREMENTED:
                self._increment(before, driver.batch, epoch)
            case Step.LANDED:
                self._land(before, driver.batch, epoch, driver.appended)
                self.watermark(after)
            case Step.COMMITTED:
                batches.mark_committed(self.connection, epoch, self.batch_ids[driver.batch])
            case Step.APPENDED | Step.OFFSETS_COMMITTED:
                pass  # outside the ledger
            case _:
                assert_never(step)

    def _increment(self, state: State, batch: int, epoch: drivers.Epoch) -> None:
        by_window = {
            window: digest_of(self.scenario, records)
            for window, records in delivered(self.scenario, state.batches[batch]).items()
            if window < self.scenario.windows
        }
        batch_id = self.batch_ids[batch]
        rows = [f"{window_start(w).isoformat()}\t{d.records}\t{d.high1}" for w, d in by_window.items()]
        staged = self.known.table.stage(self.connection, stage_name(batch_id), rows)
        added = [Increment(window_start(w), window_start(w + 1), d) for w, d in by_window.items()]
        increment(self.connection, epoch, self.known.table, batch_id, added, staged)

    def _land(self, state: State, batch: int, epoch: drivers.Epoch, appended: tuple[ModelLanding, ...]) -> None:
        scenario = self.scenario
        shut = facts.closed_at(scenario, facts.progress(scenario, state).frontiers, state.reach)
        read = []
        for span in state.batches[batch].spans:
            records = scenario.records((span,))
            seen = [window_start(w) for w in (scenario.window_of[r] for r in records) if w is not None]
            whole, newest = as_range(span), max(seen, default=None)
            read.append(RangeRead(whole, digest_of(scenario, records), newest, leader_epochs=((0, whole.start),)))
        batch_id = self.batch_ids[batch]
        batches.land_batch(self.connection, epoch, batch_id, read, [self._landing(landing) for landing in appended])
        rows = self.connection.execute(
            "SELECT landing_id FROM onceover.landing WHERE batch_id = %s ORDER BY landing_id", [batch_id]
        ).fetchall()
        for landing, row in zip(appended, rows, strict=True):
            if landing.file < scenario.windows and shut[landing.file]:
                self.late.add(len(self.landing_ids))
            self.landing_ids.append(row["landing_id"])

    def _landing(self, landing: ModelLanding) -> Landing:
        by_source: dict[KafkaPartition, list[int]] = {}
        for record in landing.records:
            number = max(p for p, first in enumerate(self.scenario.first_of) if first <= record)
            by_source.setdefault(source(number), []).append(record)
        is_window = landing.file < self.scenario.windows
        return Landing(
            window_start=window_start(landing.file) if is_window else None,
            quarantine_day=None if is_window else QUARANTINED_ON,
            byte_start=landing.byte_start,
            byte_end=landing.byte_start + len(landing.records),
            proved=True,
            parts=tuple(LandingPart(s, digest_of(self.scenario, records)) for s, records in by_source.items()),
        )

    def _refused(self, state: State, at: int) -> None:
        """The next attempt of a fenced driver."""
        driver = state.drivers[at]
        epoch = self.epoch(driver.epoch)
        tries: dict[Step | None, Callable[[], object]] = {
            None: lambda: batches.supersede_own(self.connection, epoch),
            Step.APPENDED: lambda: self._increment(state, driver.batch, epoch),
            Step.INCREMENTED: lambda: self._land(state, driver.batch, epoch, driver.appended),
            Step.LANDED: lambda: drivers.beat(self.connection, epoch),
            Step.OFFSETS_COMMITTED: lambda: batches.mark_committed(
                self.connection, epoch, self.batch_ids[driver.batch]
            ),
        }
        tries[driver.step]()

    def _judged(self, action: Action, state: State) -> None:
        seen = read_evidence(self.connection, self.name, window_start(action.at), window_start(action.at + 1), False)
        (evidence,) = seen.evidence
        assert is_right(judge_window(evidence, len(state.raw[action.at])))
        if action.did is Event.LOOKED:
            self.looks.append((evidence, seen.accounted))
        else:
            assert self._certified(evidence, seen.accounted)

    def _certified(self, evidence: Evidence, accounted: tuple[OffsetRange, ...]) -> list[object]:
        return list(certify_from_ledger(self.connection, self.known, [(evidence, ())], accounted, "model", "a look"))


def counted(counts: Counts) -> tuple[int, int]:
    """Rows of the aggregates as the two measures count them."""
    return digest(counts).records, digest(counts).high1
