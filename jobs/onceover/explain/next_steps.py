"""What to do next about a window, as short steps that a person can follow at night."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from onceover.model.finding import Kind
from onceover.model.window import Window, written

OF_PIPELINE = frozenset({Kind.UNFINISHED_BATCH, Kind.HOLE, Kind.TRUNCATED})
_LOST = {Kind.MISSING_FILE, Kind.CORRUPT_LINE, Kind.CONFLICT, Kind.MISDATED, Kind.MISPLACED_LINE}


@dataclass(frozen=True, slots=True)
class NextStep:
    """One thing to do, and the command that does it, ready to be copied."""

    text: str
    command: str | None = None


_RESTORE = NextStep("Lines that raw has lost cannot be rebuilt from it: bring the window file back first, if you can.")


def next_steps(
    pipeline: str, window: Window, state: str, kinds: Collection[str], changing: bool = False
) -> list[NextStep]:
    """By the window's state and what is wrong with it and with its pipeline now. Never empty."""
    about_window = set(kinds) - OF_PIPELINE
    return [*_of_pipeline(pipeline, kinds), *_of_window(pipeline, window, state, about_window, changing)]


def _of_pipeline(pipeline: str, kinds: Collection[str]) -> list[NextStep]:
    steps: list[NextStep] = []
    if Kind.UNFINISHED_BATCH in kinds:
        steps.append(
            NextStep(
                "Start ingest again, it supersedes the unfinished batch; so does a release, if one was killed.",
                f"onceover ingest {pipeline}",
            )
        )
    if Kind.HOLE in kinds:
        steps += [
            NextStep("Offsets that Kafka still has are read again by the next repair. See which those are:",
                 f"onceover holes {pipeline}"),
            NextStep("What Kafka has no more is for a person to decide:",
                 f'onceover accept-loss {pipeline} RANGE --from TIME --to TIME --reason "..."'),
        ]  # fmt: skip
    if Kind.TRUNCATED in kinds:
        steps.append(NextStep("Find out who cut the log; see where it stands and what is stored:",
                          f"onceover offsets {pipeline} show"))  # fmt: skip
    return steps


def _of_window(pipeline: str, window: Window, state: str, kinds: Collection[str], changing: bool) -> list[NextStep]:
    ask = f"onceover repair {pipeline} --from {window} --to {written(window.end)}"
    repair = f'{ask} --reason "..."'
    if state == "repairing":
        return [NextStep("A repair holds it now. Look again in a minute; a repair that died loses its hold by then.")]
    if state == "expired":
        return [NextStep("Nothing can be done: where raw is gone, nothing is judged and nothing can be repaired.")]
    if state == "open":
        return [NextStep("Nothing: it is judged once it has closed. If it never closes:", "onceover doctor")]
    if changing:
        return [NextStep("A batch is landing here right now. Ask again in a few seconds.")]
    restore = [_RESTORE] if set(kinds) & _LOST else []
    if set(kinds) & {Kind.CONFLICT, Kind.MISDATED}:
        decide = f'onceover decide {pipeline} {window} ID --keep HASH --reason "..."'
        restore.append(NextStep("Of an ID with several contents, decide which one counts:", decide))
    if state == "blocked":
        return [
            NextStep(
                "Put right what it was blocked for, if anything; Airflow does not try this window again by itself."
            ),
            *restore,
            NextStep("Then repair it, which lifts the block:", repair),
        ]
    if state == "certified" and set(kinds) - {Kind.LATE}:
        return [
            *restore,
            NextStep("Its certificate stands, so it is not repaired by itself. To rebuild it all the same:",
                 f'{ask} --force --reason "..."'),
        ]  # fmt: skip
    if set(kinds) - {Kind.LATE}:
        return [
            *restore,
            NextStep(
                "Airflow's DAG repair_failed_windows repairs it at its next run. To see what that would do:",
                f"{ask} --dry-run",
            ),
            NextStep("To do it now:", repair),
        ]
    if state == "certified":
        return [NextStep("Nothing: its certificate stands.")]
    return [
        NextStep("Nothing is wrong with it; the next detection certifies it. To have that now, without Spark:", repair)
    ]
