"""The plan of a repair in sentences, the same on the page and in a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from onceover.model.wording import pluralize


def describe_plan(totals: Mapping[str, int], changing: int) -> list[str]:
    """Describe what a repair would read and change; `changing` windows of the range were left out."""
    windows = pluralize(totals["windows"], "window")
    text = "Nothing is to be repaired: no closed window of this range is wrong, as far as the ledger and files tell."
    if totals["windows"]:
        lines = pluralize(totals["lines"], "line")
        text = f"A repair rebuilds {windows} from {lines} of raw, {totals['bytes']:,} bytes"
        text += f", and changes the published records by {totals['change']:+,}" if totals["change"] else ""
        if unknown := totals["unknown_changes"]:
            text += f"; of {pluralize(unknown, 'window')} the change is known only after raw is read"
        text += "."
        if missing := totals["missing_files"]:
            text += (
                f" Of {pluralize(missing, 'window')} the file is missing or too short: the repair refuses each that "
                "has lost a record; `onceover explain` says more."
            )
    left_out = f"{pluralize(changing, 'window')} left out: batches are landing there; look again in a minute."
    return [text, *([left_out] if changing else [])]
