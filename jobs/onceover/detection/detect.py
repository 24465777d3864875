"""Detection for Airflow and the command line: judge windows and request their repair, or only plan it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate, islice

from onceover.context import PipelineContext
from onceover.detection import holes
from onceover.detection.certify import certify_from_ledger
from onceover.detection.cuts import compare_log
from onceover.detection.files_without_window import register_unknown_files
from onceover.detection.look import judge_windows
from onceover.detection.plan import require_plan
from onceover.detection.reopened import reopen_extras, reopen_unlike_certified
from onceover.errors import UsageError
from onceover.ledger import drivers, read_again, repair_requests
from onceover.ledger import findings as ledger_findings
from onceover.ledger.frontiers import read_holes
from onceover.ledger.landings import count_landed_lines
from onceover.ledger.read_again import ReadAgain
from onceover.ledger.repair_requests import find_killed, find_queued
from onceover.model.dag_run import DagRun
from onceover.model.finding import Finding
from onceover.model.offsets import subtract
from onceover.model.window import Window, WindowRange
from onceover.retention.removal import refuse_expired

log = logging.getLogger(__name__)
MAX_REQUESTED = 2_000
"""Windows that one scheduled detection requests."""
MAX_LINES_REQUESTED = 100_000_000
"""Lines of these windows, unless one has more alone: some minutes of a repair."""


@dataclass(frozen=True, slots=True)
class FailedWindow:
    """A failed window with its findings."""

    window: Window
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, object]:
        local = {"local": self.window.local} if self.window.local else {}
        return {"window": self.window, "end": self.window.end, **local, "findings": self.findings}


@dataclass(frozen=True, slots=True)
class Detection:
    """The result of one detection. `waiting` counts windows that are changing or claimed now, and that the next
    detection judges; `read_again` are the holes that the requested repair reads again. `queued` is an earlier
    request whose repair is still to come: nothing further is requested before that."""

    pipeline: str
    judged: int
    certified: int
    failed: tuple[FailedWindow, ...]
    waiting: int
    blocked: int
    open: int
    findings: tuple[Finding, ...]
    request_id: int | None
    read_again: tuple[str, ...] = ()
    queued: int | None = None


def detect(
    context: PipelineContext,
    *,
    who: str,
    why: str,
    window_range: WindowRange | None = None,
    force: bool = False,
    by_value: bool = False,
    dag_run: DagRun | None = None,
    plan_token: str | None = None,
    still_runs: Callable[[DagRun], bool] | None = None,
    only: Collection[datetime] | None = None,
) -> Detection:
    """Judge closed windows that are not certified; certify the right ones from the ledger, request repair of the rest.

    With a range, judges only its windows, blocked ones too (a person or a backfill requested them); with `force`,
    certified ones as well, and `by_value` has all of these rebuilt by their records' values, now and by later repairs.
    Without a range, requests `only` these windows, if given. Leaves windows that another repair holds to it. The
    request names `dag_run`, and nothing is requested while an earlier run of that DAG `still_runs`, and is to repair
    windows of the pipeline. A forced request of the same range by the same person for the same reason, whose repair was
    killed, goes on where it was. `request_id` is None if nothing is to be repaired; Spark need not start then. Raises
    UsageError for `force` or `by_value` without a range, or an expired range; ChangedPlanError unless the range's plan
    is still the one of `plan_token`.
    """
    force = force or by_value
    if force and window_range is None:
        raise UsageError("force needs a range of windows: without one it would select every window; name the range")
    context.require_own_root()  # a ledger that lost a pipeline with raw is no pipeline that has not run yet
    if window_range is None and not context.is_registered():
        # A schedule runs for every pipeline; one that has not run yet is not a failure.
        return Detection(context.name, 0, 0, (), 0, 0, 0, (), None)
    registered, connection = context.require_same_contract(), context.ledger
    planned = require_plan(context, window_range, plan_token, force=force) if window_range and plan_token else None
    is_compared = compare_log(context)
    if window_range is None:
        register_unknown_files(context, registered)
    # A person who names windows, or a hole, may concern records that only the length of a certified file shows.
    is_searched = window_range is not None or read_holes(connection, registered.name)
    if is_searched:
        reopen_unlike_certified(context, window_range)
    reopen_extras(context)
    judged = judge_windows(connection, registered.name, context.files, window_range, force)
    if not is_compared:
        log.warning("no window of %s is certified until its log was compared with what landed", context.name)
        judged = replace(judged, judgements=(), changing=judged.changing + len(judged.judgements))
    keep = [
        j for j in judged.judgements if window_range is not None or j.evidence.window_start not in judged.ledger.blocked
    ]
    certified = certify_from_ledger(
        connection,
        registered,
        [(j.evidence, j.findings) for j in keep if j.is_right and not j.evidence.is_certified],
        who,
        why,
    )
    readable = holes.list_readable_holes(context, judged.ledger.findings)
    failed = {j.evidence.window_start: j.findings for j in keep if not j.is_right or force}
    refuse_expired(connection, registered.name, window_range)
    if planned is not None and is_compared:
        planned.require_windows(failed)
    killed = None
    if force and window_range and not by_value:  # what another request rebuilt, it may have judged by columns
        killed = find_killed(connection, registered.name, who, why, window_range)
    if killed is not None:
        log.info("request %d was killed, and goes on: %d of its windows are repaired", killed[0], len(killed[1]))
        failed = {start: findings for start, findings in failed.items() if start not in killed[1]}
    queued = find_queued(connection, registered.name, dag_run, still_runs) if dag_run and still_runs else None
    free = {start: findings for start, findings in sorted(failed.items()) if start not in judged.ledger.claimed}
    if window_range is None:
        # The next scheduled detection requests the rest: no pipeline holds up the others for hours.
        free = {start: findings for start, findings in free.items() if only is None or start in only}
        free = dict(islice(free.items(), MAX_REQUESTED))
        lines = count_landed_lines(connection, registered.name, list(free))
        free = dict(islice(free.items(), count_first([lines.get(start, 0) for start in free])))
    # A live driver carries out what was requested. Without one, a scheduled detection takes that over.
    is_left = window_range is None and not drivers.is_alive(connection, registered.name)
    requested = () if is_left else read_again.list_wanted(connection, registered.name)
    again = subtract(readable, [each.offsets for each in requested if each.is_hole])
    request_id = killed[0] if killed is not None else None
    if queued is not None:
        ledger_findings.record_failed_windows(connection, registered.name, failed)
    elif free or again:
        request_id = repair_requests.create_request(
            connection,
            registered.name,
            who,
            why,
            free,
            unblock=window_range is not None,
            by_value=by_value,
            dag_run=dag_run,
            window_range=window_range,
            forced=force,
            continued=request_id,
        )
        if again:
            read_again.request_ranges(connection, registered.name, request_id, map(ReadAgain, again))
    # What is read again is requested by now: to read a hole in order to explain it takes long, and may be killed.
    of_pipeline = holes.explain_holes(context, judged.ledger.findings)
    ledger_findings.record_findings(connection, registered.name, {None: of_pipeline})
    return Detection(
        pipeline=registered.name,
        judged=len(judged.judgements),
        certified=len(certified),
        failed=tuple(
            FailedWindow(registered.windowing.window_at(start), findings) for start, findings in sorted(failed.items())
        ),
        waiting=judged.changing + len(failed) - (0 if queued is not None else len(free)),
        blocked=len(judged.ledger.blocked),
        open=judged.ledger.open_windows,
        findings=of_pipeline,
        read_again=() if queued is not None else tuple(map(str, again)),
        queued=queued,
        request_id=request_id,
    )


def count_first(lines: Iterable[int]) -> int:
    """Return how many windows, with so many lines each, one scheduled detection requests: the first one, and those
    after it up to MAX_LINES_REQUESTED."""
    return max(1, sum(total <= MAX_LINES_REQUESTED for total in accumulate(lines)))
