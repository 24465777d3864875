"""A window's lines folded: each line judged, each ID counted once, all that a repair proves and publishes by.

    lines -> distinct lines (dedup) -> verdicts on IDs (verdicts) -> lines that are misplaced or rejected drop out
    -> one line for each ID, its record -> digests by piece (sums, pieces), runs (runs), contents to show (summary)

Nothing that a file holds raises. The result does not depend on the order of lines. A fold takes some 200 bytes a line,
62 of them for the lines themselves. A large window is folded in units (`units`), whose summaries add up.

Columns are believed where a line has the contract of its ID, and no other line has the same record with other columns.
Where they are not, `evaluate` names rows whose VALUE decides, and all of the window is folded again by the event times
and columns that VALUE gives under the contract of each ID; then it names none. Of an extra that names a contract which
the accounts lack, no other contract's evaluation is asked.

`repair/window_accounts` makes the accounts from a claim and the rebuilt window from the summary. Pieces are of the
window's own landings: an accounted ID that they lack is a stray. The fold of one window does not see an ID in two of
them: the driver compares `shared` IDs. The rows to stage are grouped from the columns of `counting`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onceover.lines.accounts import Accounts
from onceover.lines.dedup import DistinctLines, deduplicate, mark_changes
from onceover.lines.judge import JudgedLines, find_records, judge_lines
from onceover.lines.runs import find_runs
from onceover.lines.summary import MOST_CONTRACTS, Contents, WindowSummary
from onceover.lines.sums import count_all, sum_records
from onceover.lines.verdicts import EXTRA, FOREIGN, LANDED, SPARE, STRAY, IdVerdicts, judge_ids
from onceover.lines.window_lines import WindowLines


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


def fold(lines: WindowLines, accounts: Accounts, evaluated: np.ndarray | None = None) -> FoldedLines:
    """Judge and count the lines of one window, or all that some of its IDs have.

    `evaluated` is, by row, the event time that VALUE gives under the contract of the ID, NO_WINDOW if it gives none,
    NOT_EVALUATED where it was not asked.
    """
    distinct = deduplicate(lines)
    firsts = distinct.row[distinct.first]
    ids = judge_ids(lines.source[firsts], lines.offset[firsts], accounts)
    judged = judge_lines(lines, distinct, ids, accounts, evaluated)
    records = find_records(lines, distinct, judged)
    kind, copies = ids.kind[records.id], distinct.count_copies()
    is_landed, is_extra, row = kind == LANDED, kind == EXTRA, distinct.row[records.record]
    counts = is_landed | is_extra
    line_kind = np.where(judged.misplaced | judged.rejected, np.int8(-1), ids.kind[distinct.id])
    is_contested = (records.has_contents | records.has_times) & counts
    is_compacted = records.find_any(distinct.find_largest(lines.compacted)[records.line])
    landed, of_id = row[is_landed], records.id[is_landed]
    in_run = is_extra | (kind == STRAY)
    other = row[in_run]
    is_shared = counts & ids.is_shared[records.id]
    shared = row[is_shared]
    from_value = ~judged.believed[records.record[counts]]
    summary = WindowSummary(
        lines=len(lines) + lines.corrupt,
        corrupt=lines.corrupt,
        misplaced=int(copies[judged.misplaced].sum()),
        rejected=int(copies[judged.rejected].sum()),
        stray=int(copies[line_kind == STRAY].sum()),
        spare=int(copies[line_kind == SPARE].sum()),
        foreign=int(copies[line_kind == FOREIGN].sum()),
        by_value=int(from_value.sum()),
        conflicts=int((counts & records.has_contents).sum()),
        misdated=int((counts & records.has_times).sum()),
        compacted=count_all(lines.content[row[counts & is_compacted]]),
        pieces=sum_records(ids.piece[of_id], ids.release[of_id], lines.source[landed], lines.content[landed]),
        extras=count_all(lines.content[row[is_extra]]),
        runs=find_runs(kind[in_run], lines.source[other], lines.offset[other], lines.content[other]).take(
            accounts.most_runs
        ),
        contested=_list_contents(lines, distinct, records.list_lines(is_contested)).take_first(),
        decided=_list_decided(lines, distinct, ids, judged, np.isin(line_kind, (LANDED, EXTRA))),
        shared=find_runs(kind[is_shared], lines.source[shared], lines.offset[shared], lines.content[shared]),
        listed=_list_contents(lines, distinct, records.list_lines(counts & ids.is_listed[records.id])),
        unknown=judged.unknown[:MOST_CONTRACTS],
    )
    return FoldedLines(summary, row[counts], from_value, distinct.row[judged.evaluate])


def _list_decided(
    lines: WindowLines, distinct: DistinctLines, ids: IdVerdicts, judged: JudgedLines, counts: np.ndarray
) -> Contents:
    """Return each content, kept or rejected, of the decided IDs."""
    at = np.flatnonzero((ids.decided[distinct.id] >= 0) & (judged.rejected | counts))
    content = lines.content[distinct.row[at]].T
    at = at[np.lexsort((lines.event_ms[distinct.row[at]], *content[::-1], distinct.id[at]))]
    return _list_contents(lines, distinct, at, counts)


def _list_contents(
    lines: WindowLines, distinct: DistinctLines, at: np.ndarray, counts: np.ndarray | None = None
) -> Contents:
    """Return the distinct contents and event times of these distinct lines, which are in their order."""
    rows = distinct.row[at]
    content, event_ms = lines.content[rows], lines.event_ms[rows]
    keep = mark_changes(distinct.id[at], *content.T, event_ms)
    rows = rows[keep]
    does_count = np.ones(len(rows), bool) if counts is None else counts[at][keep]
    return Contents(lines.source[rows], lines.offset[rows], content[keep], event_ms[keep], does_count)
