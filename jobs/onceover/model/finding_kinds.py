"""The table of finding kinds: for each kind its words, causes and remedies.

The command line, doctor, metrics and the documents of DAGs read the table; a test compares docs/runbook.md with it
word for word. A command has the placeholders `{pipeline}`, `{window}` and `{end}`; a person replaces the words in
capitals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from onceover.model.remedies import (
    CERTIFY,
    DECLARE,
    LOOK,
    RELEASE,
    REPAIR,
    REREAD,
    RESTORE,
    TAKE_OUT,
    TAKE_OVER,
    Remedy,
)


@dataclass(frozen=True, slots=True)
class Case:
    """A cause of a finding and the effect of a repair; `reason` distinguishes the cases of one kind."""

    cause: str
    repair: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The meaning of one kind.

    `what` is a sentence for people; `{}` is the number in the evidence, `[one|many]` agrees with that number.
    `cause`, `repair` and `reason` are its first case, `other` the second if there are two.
    `first` lists actions that a repair needs to succeed. `look` is the command that shows more.
    `waits_for_batches`: a batch in flight can cause the kind for a moment, so it counts only once that batch has ended.
    `by_scan`: only a scan of raw shows the kind, so it stays until a repair reads the window again.
    """

    what: str
    cause: str
    repair: str = ""
    reason: str = ""
    other: Case | None = None
    remedy: tuple[Remedy, ...] = (LOOK, REPAIR)
    first: tuple[Remedy, ...] = ()
    look: str = "onceover explain {pipeline} {window}"
    of_window: bool = True
    waits_for_batches: bool = False
    by_scan: bool = False

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return the one or two cases."""
        first = Case(self.cause, self.repair, self.reason)
        return (first, self.other) if self.other else (first,)


class Kind(StrEnum):
    """The kinds of findings. The ledger, the logs and the UI show the values."""

    DUPLICATED = "duplicated"
    UNACCOUNTED_BYTES = "unaccounted bytes"
    MISSING_FILE = "missing file"
    LATE = "late"
    AGGREGATE_MISMATCH = "aggregate mismatch"
    RESTATED = "restated"
    STRAY_LINE = "stray line"
    CORRUPT_LINE = "corrupt line"
    FAILED_PROOF = "failed proof"
    HOLE = "hole"
    TRUNCATED = "truncated log"
    UNREADABLE = "unreadable offsets"

    @property
    def meaning(self) -> Meaning:
        """Look the kind up in the table."""
        return MEANINGS[self]


MEANINGS: Final[Mapping[Kind, Meaning]] = {
    Kind.DUPLICATED: Meaning(
        what="Raw holds records more than once, and the aggregates may count them more than once.",
        cause="two landings overlap: a crash after the landing and before the offsets were committed; or the log was "
        "cut, and its new records took old IDs",
        repair="counts each record once",
    ),
    Kind.UNACCOUNTED_BYTES: Meaning(
        what="The window file holds bytes of an append that never counted as landed, and the aggregates may count "
        "them.",
        cause="a failed attempt left lines, or a torn tail, that no landed batch accounts for; or the last certificate "
        "counts such lines, and the window has changed, or their records have landed since",
        repair="counts each record among them that landed nowhere, once",
        waits_for_batches=True,
    ),
    Kind.MISSING_FILE: Meaning(
        what="Lines that were landed are missing from the window file.",
        cause="the window file is shorter than what landed, or is gone",
        repair="refuses; the last certificate stays",
        first=(RESTORE, REREAD, TAKE_OVER, DECLARE),
        waits_for_batches=True,
    ),
    Kind.LATE: Meaning(
        what="{} arrived after the window had closed.",
        cause="records arrived after the window had closed; if they were counted correctly, detection "
        "certifies the window again without Spark",
        remedy=(CERTIFY,),
    ),
    Kind.AGGREGATE_MISMATCH: Meaning(
        what="The aggregates do not count what was landed.",
        cause="a crash between the increment and the landing: more is counted than landed",
        repair="overwrites the rows from raw",
        waits_for_batches=True,
    ),
    Kind.RESTATED: Meaning(
        what="The window was restated under another version of the contract, and its rows may not be of that version.",
        cause="`onceover restate` named the window, or records arrived in it afterwards",
        repair="evaluates the records under that version; refuses if it dates one otherwise, or quarantines one",
    ),
    Kind.STRAY_LINE: Meaning(
        what="{} in the window file [belongs|belong] elsewhere, and [counts|count] for nothing.",
        cause="a line of another window, or of a release that was killed before it landed; or of a log that the "
        "pipeline never read, which no ingest of it wrote",
        repair="notes it; refuses if a landing lacks a record",
        first=(RELEASE, TAKE_OUT, RESTORE, REREAD),
        by_scan=True,
    ),
    Kind.CORRUPT_LINE: Meaning(
        what="{} in the window file [is|are] damaged, by the hash.",
        cause="a line with a wrong hash",
        repair="notes it; refuses if a landing lacks a record",
        first=(RESTORE, REREAD),
        by_scan=True,
    ),
    Kind.FAILED_PROOF: Meaning(
        what="A repair could not prove the window from raw: its file cannot be read, lacks records that landed, or has "
        "two contents of one ID.",
        cause="a block without a live DataNode, a cell whose hash differs, a line in another line's place, or two "
        "contents of one ID under one leader epoch",
        repair="reads the file again; refuses if a landing lacks a record, or an ID has two contents",
        first=(RESTORE, REREAD),
        by_scan=True,
    ),
    Kind.HOLE: Meaning(
        what="Offsets were skipped, and records with them; windows that close beyond them wait.",
        cause="the offset store ran ahead, or another process read the topic; Kafka still has the records",
        repair="reads them again, lands them, repairs their windows",
        reason="lost",
        other=Case(
            "the log expired, or was cut, before it was read, or the topic was deleted; windows beyond stay open",
            "waits for `accept-loss`",
            "expired",
        ),
        remedy=(
            Remedy(
                "Offsets that Kafka still has are read again by the next repair. See which those are:",
                "onceover holes {pipeline}",
            ),
            Remedy(
                "Of the others, records that raw holds count once a person accepts that Kafka lost them:",
                'onceover accept-loss {pipeline} RANGE --from TIME --to TIME --reason "..."',
            ),
        ),
        look="onceover holes {pipeline}",
        of_window=False,
    ),
    Kind.TRUNCATED: Meaning(
        what="The topic's log ends before the offset that was stored, or it was cut and has grown again, with other "
        "records than landed. Or the store is another topic's. New records take IDs that were read before; both count.",
        cause="the topic's log ends before the stored offset, or was cut and has grown again: an unclean election; or "
        "the store belongs to another topic",
        repair="ingest continues at the log's end, or where it was cut; where new records take old IDs, both count",
        remedy=(
            Remedy(
                "If the log was cut, find out who did it. See where it ends and which offset is stored:",
                "onceover offsets {pipeline} show",
            ),
            Remedy("Ingest reads what the log holds now under landed offsets:", "onceover ingest {pipeline}"),
        ),
        look="onceover offsets {pipeline} show",
        of_window=False,
    ),
    Kind.UNREADABLE: Meaning(
        what="A Kafka partition waits before offsets that no reader gets; ingest goes on with the others.",
        cause="a damaged batch, one that decompresses to more than a reader has memory for, or a record of over 32 "
        "MiB; windows stay open, for its records may belong to any of them",
        repair="waits for `accept-loss --unreadable`; ingest reads the offsets again every ten minutes",
        remedy=(
            Remedy("Find out who wrote them. Where ingest waits, and why:", "onceover doctor"),
            Remedy(
                "If another replica or the producer still has the records, have them written again. Then, while ingest "
                "runs, accept that these offsets are unreadable; certificates state it:",
                'onceover accept-loss {pipeline} RANGE --unreadable --from TIME --to TIME --reason "..."',
            ),
        ),
        look="onceover doctor",
        of_window=False,
    ),
}


BY_SCAN: Final = frozenset(kind for kind, meaning in MEANINGS.items() if meaning.by_scan)
"""The kinds that only a scan of raw shows."""
RAW_DAMAGE: Final = BY_SCAN | {Kind.MISSING_FILE}
"""The kinds that say of a certified window: raw no longer proves its certificate."""
_CERTIFIED: Final = frozenset(kind for kind, meaning in MEANINGS.items() if CERTIFY in meaning.remedy)


def failures(kinds: Iterable[str]) -> set[str]:
    """Return the kinds that keep the ledger alone from certifying a window; an unknown kind of another version is
    included."""
    return set(kinds) - _CERTIFIED


def as_markdown() -> str:
    """Return the table of findings that docs/runbook.md and the documents of DAGs show, one line for each case."""
    lines = [
        f"| {kind}{case.reason and f', {case.reason}'} | {case.cause} | {case.repair} |".replace("|  |", "| |")
        for kind in Kind
        for case in kind.meaning.cases
    ]
    return "\n".join(["| finding | what happened | what repair does |", "| --- | --- | --- |", *lines])
