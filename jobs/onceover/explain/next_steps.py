"""Next steps for a window, short enough to follow at night."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from onceover.model.finding_kinds import Kind, failures
from onceover.model.remedies import (
    CERTIFY,
    COMPARE,
    DECLARE,
    LOOK,
    LOOK_AFTER,
    REBUILD,
    REPAIR,
    REREAD,
    RESTORE,
    TAKE_OUT,
    TAKE_OVER,
    Remedy,
)
from onceover.model.repair_failure import RepairFailure, lacks_lines
from onceover.model.window import Window, format_moment

_NOTHING: Final = Remedy("Nothing: its certificate is valid.")
_NOTHING_MORE: Final = Remedy("For what was read of this window, nothing: its certificate is valid.")


def list_next_steps(
    pipeline: str,
    window: Window,
    state: str,
    kinds: Collection[str],
    changing: bool = False,
    failed: Collection[str] = (),
    rows_without_raw: bool = False,
    has_unknown_compacted: bool = False,
) -> list[Remedy]:
    """Return the steps for the window's state, the codes of its last repair if that failed, and its and its pipeline's
    findings; never empty. `rows_without_raw`: a rebuild of the ledger found its rows without their raw.
    `has_unknown_compacted`: beside its text is a compacted file that the ledger does not know."""
    about_pipeline = {kind for kind in Kind if not kind.meaning.of_window}
    names = {"pipeline": pipeline, "window": str(window), "end": format_moment(window.end)}
    about_window = (
        [COMPARE]
        if state == "expired" and rows_without_raw
        else _list_window_steps(state, set(kinds) - about_pipeline, changing, failed)
    )
    helpful = [step for step in about_window if has_unknown_compacted or step is not TAKE_OVER]
    helpful = [LOOK if step is LOOK_AFTER and number == 0 else step for number, step in enumerate(helpful)]
    of_pipeline = list_pipeline_steps(pipeline, kinds)
    if of_pipeline and helpful == [_NOTHING]:
        helpful = [_NOTHING_MORE]
    return [*of_pipeline, *(step.fill(**names) for step in helpful)]


def list_pipeline_steps(pipeline: str, kinds: Collection[str]) -> list[Remedy]:
    """Return the steps that resolve those of the findings that are about the whole pipeline."""
    meanings = [kind.meaning for kind in Kind if kind in kinds and not kind.meaning.of_window]
    return [step.fill(pipeline=pipeline) for meaning in meanings for step in meaning.remedy]


def _list_window_steps(state: str, kinds: Collection[str], changing: bool, failed: Collection[str]) -> list[Remedy]:
    if state == "repairing":
        return [
            Remedy("A repair holds it now. Look again in a minute; the hold of a repair that died expires by then.")
        ]
    # A wrong line beside one that landed is nothing that raw has lost.
    has_two = not {RepairFailure.TWO_CONTENTS, RepairFailure.TWO_WINDOWS}.isdisjoint(failed)
    about = [kind for kind in Kind if kind in kinds and not (has_two and kind is Kind.FAILED_PROOF)]
    first = dict.fromkeys([*([TAKE_OUT] if has_two else ()), *(step for kind in about for step in kind.meaning.first)])
    if state == "expired":
        return [Remedy("Nothing: its raw has expired, so it can be neither judged nor repaired.")]
    if state == "open" and REREAD in first:
        return [RESTORE, REREAD, Remedy("If neither has the records, look again once the window has closed.")]
    if state == "open":
        return [Remedy("Detection judges it once it has closed. If it never closes:", "onceover doctor")]
    if changing:
        return [Remedy("A batch is landing in it right now. Try again in a few seconds.")]
    if lacks_lines(failed) and not has_two:
        first = dict.fromkeys((*first, RESTORE, REREAD, *([DECLARE] if state == "blocked" else ())))
    if state == "blocked":
        blocked = "Resolve what it was blocked for, if anything; Airflow does not retry this window by itself."
        return [Remedy(blocked), *first, Remedy("Then repair it, which lifts the block:", REPAIR.command)]
    if state in ("certified", "damaged") and failures(kinds):
        return [*first, REBUILD]
    if failures(kinds):
        return [*first, LOOK_AFTER if first else LOOK, REPAIR]
    return [_NOTHING if state == "certified" else CERTIFY]
