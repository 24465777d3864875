"""Eager repair: ingest's own session repairs windows that closed and failed, seconds later and without a cold start.

It is the ordinary detection and repair, a few windows at a time between two batches, so that no batch is in flight and
none waits for long. What it cannot repair at once is left to the schedule, whose tries are minutes apart. Scheduled
repairs may run beside it: a window has one claim.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from pyspark.sql import SparkSession

from onceover.context import PipelineContext
from onceover.detection.detect import detect
from onceover.errors import OnceoverError, SparkLostError
from onceover.fault_points import FaultPoint
from onceover.ingest.micro_batch import attempt
from onceover.ingest.restatements import share_restatements
from onceover.ledger import repair_requests
from onceover.ledger.database import DatabaseError
from onceover.ledger.landings import count_landed_lines
from onceover.ledger.windows import list_untried
from onceover.repair.confirmation import Confirmation, confirm
from onceover.repair.groups import repair_groups

log = logging.getLogger(__name__)
MAX_WINDOWS = 20
MAX_LINES = 2_000_000
"""Windows, and lines of them, that one look repairs: some seconds, in which fresh records wait."""
PAUSE_SECONDS = 5.0
"""The least time between two looks."""
REST = timedelta(minutes=10)
"""How long a window is left to the schedule after its last repair was requested."""


class EagerRepair:
    """The repairs of one driver, on its session and in its thread."""

    def __init__(self, spark: SparkSession, context: PipelineContext, fault_point: FaultPoint) -> None:
        self._spark, self._context, self._fault_point = spark, context, fault_point
        self._looked_at = float("-inf")

    def look(self) -> Confirmation | None:
        """Judge closed windows that are not certified, and repair those that failed, but for blocked ones and those
        whose repair failed before; return what came of it, None if there was nothing to repair.

        A failure is logged, and left to the schedule: ingest goes on. Raises DatabaseError if the connection to the
        ledger is lost, SparkLostError if Spark is.
        """
        if time.monotonic() < self._looked_at + PAUSE_SECONDS:
            return None
        ledger = self._context.ledger
        try:
            starts = self._choose()
            return self._repair(starts) if starts else None
        except SparkLostError:
            raise
        except (OnceoverError, DatabaseError) as error:
            if ledger.broken:
                raise
            log.warning("the eager repair failed, and is left to the schedule: %s", error)
            return None
        finally:
            self._looked_at = time.monotonic()

    def _choose(self) -> Sequence[datetime]:
        ledger, name = self._context.ledger, self._context.name
        starts = list_untried(ledger, name, REST, MAX_WINDOWS)
        lines = count_landed_lines(ledger, name, starts)
        small = [start for start in starts if lines.get(start, 0) <= MAX_LINES]
        totals = accumulate(lines.get(start, 0) for start in small)
        return [start for start, total in zip(small, totals, strict=True) if total <= MAX_LINES]

    def _repair(self, starts: Sequence[datetime]) -> Confirmation | None:
        context = self._context
        detection = detect(context, who=repair_requests.EAGER, why=repair_requests.EAGER_WHY, only=starts)
        if detection.request_id is None:
            return None
        share_restatements(context)
        registered = context.require_same_contract()
        request = repair_requests.read_request(context.ledger, registered.name, detection.request_id)
        with attempt():
            repair_groups(self._spark, context, registered, request, self._fault_point)
        done = confirm(context, request.request_id)
        log.info(
            "eager repair, request %d: %d windows certified, %d failed",
            request.request_id,
            len(done.confirmed),
            len(done.failed) + len(done.newly_blocked),
        )
        return done
