"""Orphans in quarantine: records without a window that only raw holds are adopted as quarantined."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from onceover.context import PipelineContext
from onceover.detection.own_offsets import read_own_offsets
from onceover.detection.searchable_days import find_searchable_days
from onceover.ledger.adoptions import Orphans, adopt
from onceover.ledger.catalog import RegisteredPipeline
from onceover.ledger.landed_offsets import read_accounted
from onceover.ledger.quarantine_days import record_search
from onceover.lines.contract_names import name_contracts
from onceover.model.digest import HALVES
from onceover.model.offsets import OffsetRange
from onceover.model.own_offsets import OwnOffsets
from onceover.model.record import ID_COLUMNS
from onceover.model.unlanded import NOTHING, Unlanded
from onceover.repair.unknown_contracts import explain_unknown
from onceover.spark.range_join import looked_up
from onceover.spark.raw_lines import LineFile, read_raw_lines
from onceover.spark.unlanded import collect_unlanded

log = logging.getLogger(__name__)
_SEARCHED = ("intact", "event_ms", "contract", *ID_COLUMNS, *HALVES)


def adopt_quarantined(
    spark: SparkSession, context: PipelineContext, registered: RegisteredPipeline, who: str, why: str
) -> int:
    """Search the quarantine files that have more bytes than landed, and adopt their orphans; return the number of
    records. Files wait for the next repair if Kafka does not answer, if one of their orphans landed meanwhile, or if
    they hold too many to collect. Raises RootRefusedError for another cluster."""
    connection, files = context.ledger, context.files
    lengths = files.list_quarantine_days()
    days = find_searchable_days(context, lengths)
    if not days:
        return 0
    held = context.read_held(f"{len(days)} days of quarantine with lines that no landing accounts for")
    if held is None:
        return 0
    own = read_own_offsets(context, held)
    accounted = tuple(read_accounted(connection, registered.name))
    searched = [LineFile(n, context.layout.quarantine_file(day), lengths[day]) for n, day in enumerate(days)]
    names = [name.decode() for name in name_contracts(registered.contracts)]
    lines = read_raw_lines(spark, context.raw_address, searched, *_SEARCHED)
    found, is_whole = _search(lines, accounted, held, own, names)
    orphans = [
        Orphans(None, day, unlanded.orphans, unlanded.parts, lengths[day])
        for number, day in enumerate(days)
        if (unlanded := found.get(number)) and unlanded.orphans
    ]
    adopted = adopt(connection, registered, orphans, who, why) if orphans else []
    waiting = {each.quarantine_day for each in orphans if each not in adopted}
    for number, day in enumerate(days):
        unlanded = found.get(number, NOTHING)
        if others := unlanded.foreign + sum(map(len, unlanded.beyond)):
            log.warning(
                "%s: %d records of a log that %s never read, or beyond the end of its own; they are not counted",
                context.layout.quarantine_file(day), others, registered.name,
            )  # fmt: skip
        if unlanded.unknown:
            log.error("%s: %s", context.layout.quarantine_file(day), explain_unknown(context, unlanded.unknown))
        if is_whole and day not in waiting and not unlanded.unknown:
            pending = sum(map(len, unlanded.pending))
            record_search(connection, registered.name, day, lengths[day], pending, unlanded.beyond)
    return sum(len(piece) for each in adopted for piece in each.ids)


def _search(
    lines: DataFrame,
    accounted: Sequence[OffsetRange],
    held: Sequence[OffsetRange],
    own: OwnOffsets,
    contracts: Sequence[str],
) -> tuple[dict[int, Unlanded], bool]:
    """Return the unlanded records by the number of their file, in place of a window, and whether these are all."""
    unlanded = (
        lines.where(F.col("intact") & F.col("event_ms").isNull())
        .transform(looked_up(((piece, 1) for piece in accounted), "is_accounted"))
        .where("is_accounted IS NULL")
    )
    return collect_unlanded(unlanded, held, own, contracts)
