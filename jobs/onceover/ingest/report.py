"""Ingest's output: a line a batch, and one when there is nothing left to read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from onceover.model.batch import Landing
from onceover.model.hidden_offsets import HiddenOffsets
from onceover.model.offsets import OffsetRange
from onceover.model.window import format_moment

log = logging.getLogger("onceover")


@dataclass(frozen=True, slots=True)
class Progress:
    """A turn of the loop, for reporting. Times are in seconds, `append_seconds` until all was read and appended; `lag`
    is in offsets by Kafka partition, to the high watermark; of them open transactions hide `hidden`. The batch waited
    `waited_seconds` after its submission, `waiting` others still wait, and `rate` is its limit in offsets a second.
    `in_quarantine` has the landings of its records there; `searched` are the ranges that wait for the search for a
    record that ends Spark."""

    batch_id: int | None
    records: int
    quarantined: int
    windows: int
    append_seconds: float
    total_seconds: float
    lag: Mapping[int, int]
    watermark: datetime | None
    every_window_closed: bool
    open_windows: int
    waited_seconds: float = 0.0
    waiting: int = 0
    rate: float | None = None
    in_quarantine: Sequence[Landing] = ()
    hidden: Sequence[HiddenOffsets] = ()
    searched: Sequence[OffsetRange] = ()


def make_reporter(pipeline: str, hear: Callable[[Progress], None] = lambda _: None) -> Callable[[Progress], None]:
    """Return a reporter that prints each batch, and an idle turn only when its line has changed; `hear` gets each
    batch after that."""
    last_idle: str | None = None
    refused = ""

    def report(progress: Progress) -> None:
        nonlocal last_idle, refused
        text = format_progress(progress)
        if progress.batch_id is None and text == last_idle:
            return
        last_idle = text if progress.batch_id is None else None
        try:
            print(f"{pipeline} {text}", flush=True)
        except OSError as error:  # records are landed all the same: a full disk of logs, a pipe without a reader
            if str(error) != refused:
                log.warning("lines of progress cannot be written: %s; ingest goes on without", error)
            refused = str(error)
        if progress.batch_id is not None:
            hear(progress)

    return report


def format_progress(progress: Progress) -> str:
    """Return batch, records, pace, lag by Kafka partition, watermark and open windows in one line."""
    if progress.every_window_closed:
        closed = "idle, every window closed"
    else:
        closed = f"watermark {format_moment(progress.watermark) if progress.watermark else 'none yet'}"
    lag = " ".join(f"{kafka_partition}:{offsets}" for kafka_partition, offsets in sorted(progress.lag.items()))
    waiting = [*map(str, progress.hidden), *(f"{each} waits while it is searched" for each in progress.searched)]
    state = " | ".join([f"lag {lag}", closed, f"{progress.open_windows} windows open", *waiting])
    if progress.batch_id is None:
        return f"nothing to read | {state}"
    pace = progress.records / progress.total_seconds if progress.total_seconds else 0.0
    waited = f"waited {progress.waited_seconds:.1f} s, {progress.waiting} waiting"
    allowed = f", rate {progress.rate:,.0f}/s" if progress.rate is not None else ""
    quarantined = f", {progress.quarantined:,} to quarantine" if progress.quarantined else ""
    return (
        f"batch {progress.batch_id}: {progress.records:,} records{quarantined} in {progress.windows} windows, "
        f"{progress.total_seconds:.1f} s (append {progress.append_seconds:.1f}), "
        f"{pace:,.0f} records/s | {waited}{allowed} | {state}"
    )
