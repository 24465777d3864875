"""What to do next about a window, as short steps that a person can follow at night."""

from __future__ import annotations

from collections.abc import Collection

from onceover.model.finding_kinds import CERTIFY, LOOK, REPAIR, Kind, Remedy, failures
from onceover.model.window import Window, written


def list_next_steps(
    pipeline: str, window: Window, state: str, kinds: Collection[str], changing: bool = False
) -> list[Remedy]:
    """By the window's state and what is wrong with it and with its pipeline now. Never empty."""
    about_pipeline = {kind for kind in Kind if not kind.meaning.of_window}
    names = {"pipeline": pipeline, "window": str(window), "end": written(window.end)}
    about_window = _list_window_steps(state, set(kinds) - about_pipeline, changing)
    return [*list_pipeline_steps(pipeline, kinds), *(step.fill(**names) for step in about_window)]


def list_pipeline_steps(pipeline: str, kinds: Collection[str]) -> list[Remedy]:
    """What ends those of the findings that are about the whole pipeline."""
    there = [kind.meaning for kind in Kind if kind in kinds and not kind.meaning.of_window]
    return [step.fill(pipeline=pipeline) for meaning in there for step in meaning.remedy]


def _list_window_steps(state: str, kinds: Collection[str], changing: bool) -> list[Remedy]:
    if state == "repairing":
        return [Remedy("A repair holds it now. Look again in a minute; a repair that died loses its hold by then.")]
    if state == "expired":
        return [Remedy("Nothing can be done: where raw is gone, nothing is judged and nothing can be repaired.")]
    if state == "open":
        return [Remedy("Nothing: it is judged once it has closed. If it never closes:", "onceover doctor")]
    if changing:
        return [Remedy("A batch is landing here right now. Ask again in a few seconds.")]
    first = dict.fromkeys(step for kind in Kind if kind in kinds for step in kind.meaning.first)
    if state == "blocked":
        blocked = "Put right what it was blocked for, if anything; Airflow does not try this window again by itself."
        return [Remedy(blocked), *first, Remedy("Then repair it, which lifts the block:", REPAIR.command)]
    if state == "certified" and failures(kinds):
        stays = "Its certificate stands, so it is not repaired by itself. To rebuild it all the same:"
        force = 'onceover repair {pipeline} --from {window} --to {end} --force --reason "..."'
        return [*first, Remedy(stays, force)]
    if failures(kinds):
        return [*first, LOOK, REPAIR]
    return [Remedy("Nothing: its certificate stands.") if state == "certified" else CERTIFY]
