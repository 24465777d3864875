"""Window files that the ledger has no window for: of an append that never counted, or of before a restore."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from onceover.context import PipelineContext
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.increments import insert_windows
from onceover.ledger.windows import count_files_by_day, list_known_starts


def register_unknown_files(
    context: PipelineContext, registered: RegisteredPipeline, *, every: bool = False
) -> list[datetime]:
    """Give each window file without a window in the ledger one, so that its bytes are judged; return these windows.

    Lists the days whose folders hold more files than the ledger knows, or with `every` all: a file that the ledger
    knows and that is missing could hide another.
    """
    on_hdfs = context.files.count_by_day()
    known = count_files_by_day(context.ledger, registered.name)
    days = [day for day, number in sorted(on_hdfs.items()) if every or number > known.get(day, 0)]
    windowing = registered.windowing
    starts = {start for day in days for start in _list_starts(context, day) if windowing.is_start(start)}
    unknown = sorted(starts - set(list_known_starts(context.ledger, registered.name, sorted(starts))))
    ends = {start: windowing.window_at(start).end for start in unknown}
    insert_windows(context.ledger, registered.name, registered.table, ends)
    return unknown


def _list_starts(context: PipelineContext, day: date) -> list[datetime]:
    midnight = datetime.combine(day, time(tzinfo=UTC))
    files = context.files.list_window_files(midnight, midnight + timedelta(days=1))
    return [file.window_start for file in files if file.window_start is not None and file.path.endswith(".log")]
