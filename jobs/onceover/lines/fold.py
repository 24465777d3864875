"""A window's lines folded: each line judged, each record counted once, all that a repair proves and publishes by.

    lines -> distinct lines (dedup) -> verdicts on readings (verdicts) -> misplaced lines drop out
    -> one line for each reading, its record -> digests by piece (sums, pieces), runs (runs), summary

A reading is an ID under one leader epoch. Readings of an ID count apart where their contents differ, for both were in
the log; where they do not, they are one record. Nothing that a file holds raises. The result does not depend on the
order of lines. A fold takes some 200 bytes a line, 62 of them for the lines themselves. A large window is folded in
units (`units`), whose summaries add up.

Columns are believed where a line has the contract of its ID, and no other line has the same record with other columns.
Where they are not, `evaluate` names rows whose VALUE decides, and all of the window is folded again by the event times
and columns that VALUE gives under the contract of each ID; then it names none. Of an extra that names a contract which
the accounts lack, no other contract's evaluation is asked.

`repair/window_accounts` makes the accounts from a claim and the rebuilt window from the summary. Pieces are of the
window's own landings. The rows to stage are grouped from the columns of `counting`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onceover.lines.accounts import Accounts
from onceover.lines.dedup import deduplicate
from onceover.lines.digest_sums import count_all, sum_records
from onceover.lines.judge import find_records, find_repeats, judge_lines
from onceover.lines.runs import find_runs
from onceover.lines.summary import MAX_CONTRACTS, WindowSummary
from onceover.lines.verdicts import CLASHING, EXTRA, FOREIGN, LANDED, SPARE, STRAY, judge_readings
from onceover.lines.window_lines import WindowLines
from onceover.model.log_history import NO_EPOCH


@dataclass(frozen=True, slots=True)
class FoldedLines:
    """The summary, and rows of the lines that were folded, or of typed columns that are kept beside them. It is final
    only if `evaluate` is empty.

    `counting` has one row for each record that counts, in the order of IDs; where `from_value`, its columns come from
    VALUE. `evaluate` are rows whose VALUE decides, one for all identical lines.
    """

    summary: WindowSummary
    counting: np.ndarray
    from_value: np.ndarray
    evaluate: np.ndarray

    @property
    def is_by_columns(self) -> bool:
        """Whether the columns in lines gave all records that count, and no VALUE is asked for."""
        return not len(self.evaluate) and not self.from_value.any()


def fold(lines: WindowLines, accounts: Accounts, evaluated: np.ndarray | None = None) -> FoldedLines:
    """Judge and count the lines of one window, or all that some of its IDs have.

    `evaluated` is, by row, the event time that VALUE gives under the contract of the ID, NO_WINDOW if it gives none,
    NOT_EVALUATED where it was not asked.
    """
    if len(accounts.blind):
        lines = replace(lines, epoch=np.where(np.isin(lines.source, accounts.blind), NO_EPOCH, lines.epoch))
    distinct = deduplicate(lines)
    firsts = distinct.row[distinct.first]
    of_release = np.array([name.startswith(b"R") for name in lines.contracts], bool)[lines.contract[distinct.row]]
    is_released = np.logical_or.reduceat(of_release, distinct.first) if len(distinct) else of_release
    verdicts = judge_readings(lines.source[firsts], lines.offset[firsts], lines.epoch[firsts], is_released, accounts)
    judged = judge_lines(lines, distinct, verdicts, accounts, evaluated)
    records = find_records(lines, distinct, judged)
    kind, copies = verdicts.kind[records.id], distinct.count_copies()
    row = distinct.row[records.record]
    counts = (kind == LANDED) | (kind == EXTRA)
    line_kind = np.where(judged.misplaced, np.int8(-1), verdicts.kind[distinct.id])
    landed, of_landed = row[kind == LANDED], records.id[kind == LANDED]
    counting = row[counts]
    is_record = ~find_repeats(lines, counting)
    from_value = ~judged.believed[records.record[counts]]
    is_compacted = records.find_any(distinct.find_largest(lines.compacted)[records.line])[counts]
    run_kind = np.where(counts & records.has_contents, np.int8(CLASHING), kind)
    in_run = (run_kind == EXTRA) | (run_kind == STRAY) | (run_kind == CLASHING)
    other = row[in_run]
    runs = find_runs(run_kind[in_run], lines.source[other], lines.epoch[other], lines.offset[other])
    summary = WindowSummary(
        lines=len(lines) + lines.corrupt,
        corrupt=lines.corrupt,
        misplaced=int(copies[judged.misplaced].sum()),
        stray=int(copies[line_kind == STRAY].sum()),
        spare=int(copies[line_kind == SPARE].sum()),
        foreign=int(copies[line_kind == FOREIGN].sum()),
        by_value=int(from_value[is_record].sum()),
        repeated=int((~is_record).sum()),
        records=count_all(lines.content[counting[is_record]]),
        compacted=count_all(lines.content[counting[is_record & is_compacted]]),
        pieces=sum_records(
            verdicts.piece[of_landed], verdicts.release[of_landed], lines.source[landed], lines.content[landed]
        ),
        runs=runs.take(accounts.max_runs),
        unknown=judged.unknown[:MAX_CONTRACTS],
    )
    return FoldedLines(summary, counting[is_record], from_value[is_record], distinct.row[judged.evaluate])
