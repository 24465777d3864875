"""What a repair has read again from Kafka before it claims its windows: its holes, and what one window's raw has lost.

Holes are found by detection. What raw has lost is found by a scan that compares each landing with what raw holds;
unproved ones are read again for this window only, and a repair then proves the window by the second copies.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.detection.evidence import read_versions
from onceover.detection.look import judge_windows
from onceover.errors import BusyError, SparkLostError, UnreachableError, UsageError
from onceover.fault_points import FaultPoint
from onceover.ingest.job import build_driver, open_source
from onceover.kafka import TopicFacts
from onceover.kafka.log_bounds import clip_to_held
from onceover.ledger import compactions, lost_windows, read_again, repair_requests
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.drivers import as_driver, beat, name_process
from onceover.ledger.log_limits import list_unreadable
from onceover.ledger.read_again import ReadAgain
from onceover.model.claim import ClaimedLanding, ClaimedWindow
from onceover.model.dag_run import DagRun
from onceover.model.offsets import OffsetRange, coalesce, split, subtract
from onceover.model.window import Window, WindowRange
from onceover.raw.damaged_files import DamagedFiles
from onceover.repair.folded import list_compacted, list_texts, open_rebuild
from onceover.repair.proof import UnprovedPart, list_unproved_parts
from onceover.spark.failure import reject_unblamed, summarize
from onceover.spark.hdfs_leases import open_leases

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class RereadPlan:
    """What raw lacks of one window: `records` of its landings, the ranges `held` by Kafka's log that have them, and
    the ranges `gone` from the log. `damage` says why the window file cannot be read, None if it can: all of its
    landings count as lacking. `compacted_is_lost`: the file that replaced the window's text is missing, or holds other
    records."""

    window: Window
    records: int
    held: tuple[ReadAgain, ...]
    gone: tuple[OffsetRange, ...]
    damage: str | None
    compacted_is_lost: bool = False
    is_interrupted: bool = False  # a killed reread left a part of the file that is to be brought back

    @property
    def lacks_nothing(self) -> bool:
        return not (self.held or self.gone or self.damage)

    def as_dict(self) -> dict[str, object]:
        return {
            "window": self.window,
            "lacking_records": self.records,
            "read_again": [str(each.offsets) for each in self.held],
            "gone_from_kafka": list(map(str, self.gone)),
            "damage": self.damage,
        }


def plan_reread(
    spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline, window: Window
) -> RereadPlan:
    """Compare the window's landings with its raw, and what raw lacks with Kafka's log. Writes nothing.

    Raises UsageError for a window that is unknown or has expired.
    """
    claimed = lost_windows.read_unclaimed(context.ledger, registered.name, window.start)
    if claimed is None:
        raise UsageError(
            f"window {window} of {registered.name} is unknown or has expired, so nothing can be missing from its raw; "
            f"see `onceover explain {registered.name} {window}`"
        )
    parts, compacted_is_lost, damage = _scan(spark, context, registered, claimed)
    lacking = [(part.landing, part.offsets) for part in parts]
    records = sum(max(0, part.expected.records - part.actual.records) for part in parts)
    if damage is not None:
        lacking = [(landing, offsets) for landing in claimed.landings for offsets, _ in landing.parts]
        records = sum(digest.records for landing in claimed.landings for _, digest in landing.parts)
    with context.open_own_topic() as topic:
        facts = topic.facts()
    held, gone = _divide(context, registered, window.start, lacking, facts)
    path = context.layout.window_file(window.start)
    is_interrupted = bool(DamagedFiles(context.raw_address, context.layout).list_unfinished(path))
    return RereadPlan(window, records, held, gone, damage, compacted_is_lost, is_interrupted)


def request_reread(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    plan: RereadPlan,
    who: str,
    why: str,
    dag_run: DagRun | None = None,
) -> tuple[int | None, RereadPlan]:
    """Request the repair of the window, with the ranges to read again before; replace a damaged file first. Returns the
    request's ID, None if Kafka holds nothing that raw lacks, and the plan as it is then.

    The window is left out of the request while it is open: its repair follows once it has closed.
    """
    context.require_own_root()
    ledger, name, start = context.ledger, registered.name, plan.window.start
    if plan.is_interrupted or (plan.damage is not None and plan.held):
        _replace_damaged(spark, context, name, start, who)
        plan = plan_reread(spark, context, registered, plan.window)
        if plan.damage is not None:
            raise UnreachableError(
                f"the window file of {plan.window} cannot be read, though its blocks can: {plan.damage}; run the "
                "command again"
            )
    if not plan.held and not plan.lacks_nothing:
        return None, plan
    if plan.compacted_is_lost and not plan.gone:
        _set_compacted_aside(context, start)
    lost_windows.lift_expiry(ledger, name, start)
    only = WindowRange(plan.window.start, plan.window.end)
    judged = judge_windows(ledger, name, context.files, only, every=True, patience=0.0)
    findings = {each.evidence.window_start: each.findings for each in judged.judgements}
    # A batch in flight leaves a window out of the judgement, and must not leave it out of the repair.
    closed = read_versions(ledger, name, only.start, only.end, every=True)
    windows = {each: findings.get(each, ()) for each in closed}
    request_id = repair_requests.create_request(ledger, name, who, why, windows, unblock=True, dag_run=dag_run)
    read_again.request_ranges(ledger, name, request_id, plan.held)
    return request_id, plan


def run_read_again(
    spark: SparkSession,
    context: PipelineContext,
    registered: RegisteredPipeline,
    request_id: int,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Have the request's holes read again and landed, and add the closed windows of their records to it; have what one
    window file has lost appended to that file.

    Waits `patience` seconds for a live driver to do it in its next turns; without one, this process is the driver
    meanwhile. What has not been read then keeps waiting, and a hole stays a finding.
    """
    connection, name, deadline = context.ledger, registered.name, time.monotonic() + patience
    while read_again.list_wanted(connection, name, request_id):
        try:
            with as_driver(connection, name, name_process("repair")) as epoch, open_source(context) as (topic, offsets):
                loop = build_driver(spark, context, epoch, registered, topic, offsets, FaultPoint())
                while read_again.list_wanted(connection, name, request_id):
                    progress = loop.turn(only_again=True)
                    log.info("read %d records again", progress.records)
                    if progress.batch_id is None:  # the record that fails each batch is searched for
                        time.sleep(0.5)
        except BusyError:
            if time.monotonic() > deadline:
                log.warning("ingest is running and has not read the missing offsets again yet; the next repair retries")
                break
            time.sleep(0.5)
    read_again.add_landed_windows(connection, name, request_id)


def _scan(
    spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline, claimed: ClaimedWindow
) -> tuple[list[UnprovedPart], bool, str | None]:
    """Return what raw does not hold, whether the compacted file is lost, and why raw could not be read, None if it
    could.

    If the compacted file cannot be read, or is another than was recorded, the text alone is.
    """
    start, files = claimed.window_start, context.files
    texts, compacted = list_texts(files, files.read_lengths([start])), list_compacted(files, [claimed])
    damage, is_lost = None, claimed.compacted is not None and not compacted
    for read in (compacted, {}) if compacted else ({},):
        try:
            with open_rebuild(spark, context, registered.contracts, [claimed], texts, read) as (rebuild, windows):
                rebuilt, damage = windows.get(start), rebuild.failures.get(start)
        except (Py4JNetworkError, ConnectionError) as error:
            raise SparkLostError("Spark's JVM has died; run the command again, nothing is half-done") from error
        except (PySparkException, Py4JError) as error:
            reject_unblamed(error)
            rebuilt, damage = None, summarize(error)
        if rebuilt is None:
            is_lost = is_lost or bool(read)
            continue
        is_other = claimed.compacted is not None and rebuilt.compacted != claimed.compacted.digest
        if read and is_other and not rebuilt.clashing:  # of an ID with two contents, another one may count
            is_lost = True
            continue
        return list_unproved_parts(claimed, rebuilt), is_lost, None
    return [], is_lost, damage


def _divide(
    context: PipelineContext,
    registered: RegisteredPipeline,
    window_start: datetime,
    lacking: Sequence[tuple[ClaimedLanding, OffsetRange]],
    facts: TopicFacts,
) -> tuple[tuple[ReadAgain, ...], tuple[OffsetRange, ...]]:
    """Return the ranges to read again, each of one contract version and no larger than a batch, and those gone from the
    log."""
    by_version: defaultdict[int, list[OffsetRange]] = defaultdict(list)
    for landing, offsets in lacking:
        ids = [piece for piece in landing.ids if piece.source == offsets.source]
        released = {landing.release.version: ids} if landing.release else None
        for version, pieces in (released or registered.cutovers.cut_by_version(ids)).items():
            by_version[version] += pieces
    most = context.pipeline.ingest.max_records_per_batch
    unreadable = list_unreadable(context.ledger, context.name, facts.generation)
    wanted: list[ReadAgain] = []
    gone: list[OffsetRange] = []
    for version, ranges in sorted(by_version.items()):
        for whole in coalesce(ranges):
            held = subtract([clip_to_held(whole, facts)], unreadable)
            wanted += [ReadAgain(piece, window_start, version) for piece in split(held, most)]
            gone += subtract([whole], held)
    return tuple(wanted), coalesce(gone)


def _replace_damaged(
    spark: SparkSession, context: PipelineContext, name: str, window_start: datetime, who: str
) -> None:
    """Replace the window file by what is readable of it, as the pipeline's driver, or finish a replacement that was
    killed. Raises BusyError while ingest runs, which may append to that file."""
    path = context.layout.window_file(window_start)
    with as_driver(context.ledger, name, name_process("reread")) as epoch:
        context.root.mark_driver(epoch, who, "a damaged window file was replaced")
        leases = open_leases(spark, context)
        if context.files.read_length(path) is not None and not leases.is_closed(path):
            leases.recover(path)
        files = DamagedFiles(context.raw_address, context.layout, partial(beat, context.ledger, epoch))
        kept = files.replace(path, leases.has_copy)
    if kept is not None:
        log.warning("%s was damaged: its readable part replaces it, and the file itself is kept as %s", path, kept)


def _set_compacted_aside(context: PipelineContext, window_start: datetime) -> None:
    """Move the file that should replace the window's text away from its place, where repairs and audits read it."""
    compacted = compactions.list_substitutes(context.ledger, context.name, [window_start]).get(window_start)
    if compacted is None:
        return
    path = context.layout.compacted_file(window_start, compacted.digest)
    if kept := DamagedFiles(context.raw_address, context.layout).set_aside(path):
        log.warning("%s was damaged: it is kept as %s, and text from Kafka replaces it", path, kept)
