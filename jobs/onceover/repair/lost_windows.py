"""Windows whose landed records raw has lost: found without Spark, and given up by a person.

Raw lacks records where a file is missing, where it is shorter than what landed and no repair could prove it, and where
the last repair said so and nothing has changed since. A window without its file whose rows are as certified can be
given up at once: a ledger restored from a backup does not know what retention moved away after it. Any other has to be
lost by Kafka too. Offsets that Kafka holds do not help once they were read again for the window: they are other
windows' records, or those of a log that was cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from onceover.context import PipelineContext
from onceover.detection.look import Judgement, judge_windows
from onceover.detection.sweep import ShortQuarantine
from onceover.errors import OnceoverError, UnreachableError
from onceover.ledger import lost_windows, read_again
from onceover.ledger.lost_windows import FailedRepair, LostWindow
from onceover.model.digest import Digest
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import OffsetRange, coalesce, intersect, subtract
from onceover.model.repair_failure import RepairFailure, lacks_lines
from onceover.model.window import format_moment
from onceover.model.wording import pluralize
from onceover.raw.damaged_files import DamagedFiles

_MAX_SAID = 300
_TRUSTED = timedelta(hours=1)  # how long a repair's reading of raw is believed, and how long an outage may last


@dataclass(frozen=True, slots=True)
class LostWindows:
    """Windows of whose landed records raw lacks some: those that can be given up, and those that cannot, each with the
    reason. `changing` counts windows in which a batch is landing."""

    declarable: tuple[LostWindow, ...] = ()
    others: tuple[tuple[LostWindow, str], ...] = ()
    changing: int = 0

    @property
    def rows(self) -> list[dict[str, object]]:
        """All of them, in order, as values; `why_not` is None if one can be given up."""
        listed = [*((lost, None) for lost in self.declarable), *self.others]
        return [
            {"window": lost.window_start, "records": lost.records, "bytes": lost.bytes, "what": lost.what,
             "why_not": why_not}
            for lost, why_not in sorted(listed, key=lambda pair: pair[0].window_start)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Seen:
    """A window whose raw lacks records; `repair` is its last one if that would fail again, `error` why its file cannot
    be read, if that repair could not read it. `is_read`: a repair has failed on the file as it is, or there is none.
    `text_gone` has the certified digest of a window that has no file in place of its certified text."""

    lost: LostWindow
    repair: FailedRepair | None
    is_read: bool
    error: OnceoverError | None
    text_gone: Digest | None


def list_lost(context: PipelineContext) -> LostWindows:
    """Return the windows whose raw lacks landed records. Writes nothing."""
    context.require_own_root()
    ledger, name, registered = context.ledger, context.name, context.require_same_contract()
    repairs = lost_windows.list_failed_repairs(ledger, name)
    look = judge_windows(ledger, name, context.files, None, every=True)
    opened = judge_windows(ledger, name, context.files, None, every=True, patience=0.0, open_ones=True)
    closed = _select(context, look.judgements, repairs)
    waiting = [(seen.lost, "it is open: it can be declared once it has closed")
               for seen in _select(context, opened.judgements, {})]  # fmt: skip
    without_text = {seen.lost.window_start: seen.text_gone for seen in closed if seen.text_gone}
    compacted = context.files.read_compacted_lengths(without_text)
    certified = lost_windows.list_as_certified(ledger, registered, list(without_text))
    are_lost = [seen for seen in closed if seen.lost.window_start not in certified]
    held = context.read_held(f"{len(are_lost)} windows whose raw lacks records") if are_lost else ()
    again = Counter(each.window_start for each in read_again.list_wanted(ledger, name))
    declarable: list[LostWindow] = []
    for seen in closed:
        lost, start = seen.lost, seen.lost.window_start
        if start in look.ledger.claimed:
            waiting.append((lost, "a repair holds it; try again in a minute"))
        elif start in again:
            waiting.append(
                (lost, f"Kafka is to be read again for it, {pluralize(again[start], 'range')}: wait for that")
            )
        elif start in compacted:
            waiting.append((lost, f"it has a compacted file: run `onceover compact {name}` first"))
        elif start in certified:
            declarable.append(replace(lost, what="its file is gone, its rows are as certified", keeps_certificate=True))
        elif held is None:
            waiting.append((lost, "Kafka does not say whether it still holds the records; see `onceover doctor`"))
        elif why := _explain_doubt(context, seen) or _explain_held(context, start, held, seen.repair):
            waiting.append((lost, why))
        else:
            declarable.append(lost)
    others = sorted(waiting, key=lambda pair: pair[0].window_start)
    return LostWindows(tuple(declarable), tuple(others), look.changing)


def give_up(
    context: PipelineContext, listed: Sequence[LostWindow], days: Sequence[ShortQuarantine], who: str, why: str
) -> tuple[int, int]:
    """Declare the listed windows expired, each only if it has not changed since, and these days of quarantine, which no
    aggregate counts. Returns their numbers.

    Raises UnreachableError while servers are down, which may hold what raw seems to lack.
    """
    if not listed and not days:
        return 0, 0
    context.require_own_root()
    DamagedFiles(context.raw_address, context.layout).require_servers(f"raw of {context.name}")
    windows = context.files.expired.add_marked(
        [each.window_start for each in listed],
        lambda: lost_windows.expire_lost(context.ledger, context.name, listed, who, why),
    )
    return windows, lost_windows.expire_days(context.ledger, context.name, [each.day for each in days], who, why)


def _select(
    context: PipelineContext,
    judgements: Sequence[Judgement],
    repairs: Mapping[datetime, FailedRepair],
) -> list[_Seen]:
    """Return the judged windows whose raw lacks records."""
    found: list[_Seen] = []
    for judgement in judgements:
        evidence, length = judgement.evidence, judgement.file_length or 0
        failed, error = repairs.get(evidence.window_start), None
        if failed and failed.bytes_read is None and _says_lost(failed):
            error = _find_error(context, evidence.window_start)
        would_fail_again = failed and _says_lost(failed) and (error is not None or failed.bytes_read == length)
        repair = failed if would_fail_again else None
        missing = [each for each in judgement.findings if each.kind is Kind.MISSING_FILE]
        is_read = bool(repair or not length or (failed and failed.bytes_read == length))
        if missing and missing[0].evidence.get("compacted"):
            is_read = True  # no repair certifies the window without that file
            what = "its compacted file is missing or has another length"
        elif missing:
            what = f"its file has {length:,} of {evidence.expected_length:,} bytes"
        elif repair:
            what = repair.reason[:_MAX_SAID]
        else:
            continue
        found.append(
            _Seen(
                LostWindow(
                    evidence.window_start,
                    evidence.version,
                    evidence.expected.records,
                    evidence.expected_length,
                    what,
                ),
                repair,
                is_read,
                error,
                evidence.certified if missing and judgement.file_length is None and not evidence.compacted else None,
            )
        )
    return found


def _says_lost(repair: FailedRepair) -> bool:
    """Return whether raw lacks lines by that repair. Where an ID has two contents, a person looks at that first."""
    return lacks_lines(repair.failures) and RepairFailure.TWO_CONTENTS not in repair.failures


def _find_error(context: PipelineContext, window_start: datetime) -> OnceoverError | None:
    """Return why the window file cannot be read to its end, None if it can."""
    try:
        for _ in context.files.read_window(window_start):
            pass
    except OnceoverError as error:
        return error
    return None


def _explain_doubt(context: PipelineContext, seen: _Seen) -> str | None:
    """Return why raw may hold the records after all; None if nothing says so."""
    window_start, repair = seen.lost.window_start, seen.repair
    files, path = DamagedFiles(context.raw_address, context.layout), context.layout.window_file(window_start)
    named = f"{context.name} {format_moment(window_start)}"
    if files.list_unfinished(path):
        return f'a reread of it was interrupted: run `onceover reread {named} --reason "..."` again first'
    repair_first = f"repair it first, as `onceover explain {named}` shows"
    if not seen.is_read:
        return f"no repair has read its file as it is, which may hold all records all the same: {repair_first}"
    if repair is None:
        return None
    is_recent = datetime.now(UTC) - repair.started_at < _TRUSTED
    if repair.bytes_read is None:
        if is_recent and isinstance(seen.error, UnreachableError):
            where = files.store.where
            return f"{where} does not deliver its file, which may pass: try again an hour after the repair that failed"
    elif not is_recent or files.was_written_since(path, repair.started_at):
        return f"its file was written since the repair that failed, or that is over an hour ago: {repair_first}"
    return None


def _explain_held(
    context: PipelineContext, window_start: datetime, held: Sequence[OffsetRange], repair: FailedRepair | None
) -> str | None:
    """Return why the window cannot be given up while Kafka holds offsets of its landings; None if it can."""
    window = lost_windows.read_unclaimed(context.ledger, context.name, window_start)
    if window is None:
        raise UnreachableError(f"window {format_moment(window_start)} has expired meanwhile; run the command again")
    left = intersect(coalesce(piece for landing in window.landings for piece in landing.ids), held)
    left = subtract(left, repair.read_again) if repair else left
    if not left:
        return None
    number = pluralize(sum(map(len, left)), "offset")
    return (
        f"Kafka still holds {number} that may have them: run `onceover reread {context.name} "
        f'{format_moment(window_start)} --reason "..."` first'
    )
