"""The report of `onceover pipelines check --sample`: windows, reasons for quarantine, and the newest records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onceover.cli.output import draw_table, say
from onceover.model.window import format_moment, from_ms
from onceover.model.wording import pluralize
from onceover.printable import escape
from onceover.spark.sample import TopicSample

_MOST_WINDOWS = 10


def list_as_json(sample: TopicSample) -> dict[str, Any]:
    """Return the sample as `--json` prints it."""
    return {
        "records": sample.records,
        "quarantined": sample.quarantined,
        "windows": sample.windows,
        "reasons": [{"reason": r.reason, "records": r.records, "error": r.error} for r in sample.reasons],
        "newest": [_name_columns(row) for row in sample.newest],
    }


def show_sample(sample: TopicSample, topic: str) -> None:
    """Print what the contract makes of the topic's last records."""
    if not sample.records:
        say(f"topic {escape(topic)} holds no record")
        return
    if sample.windows:
        shown = list(sample.windows.items())[-_MOST_WINDOWS:]
        say(draw_table(["window", ">records"], shown))
        if len(shown) < len(sample.windows):
            say(f"and {pluralize(len(sample.windows) - len(shown), 'earlier window')}")
    if sample.newest:
        rows = [_name_columns(row) for row in sample.newest]
        say(draw_table(list(rows[0]), (list(row.values()) for row in rows)))
    if sample.reasons:
        say(draw_table(["to quarantine because", ">records"], ((each.reason, each.records) for each in sample.reasons)))
    for each in sample.reasons:
        if each.error:
            say(f"{escape(each.reason)}: {escape(each.error)}", whole=True)
    fit = sample.records - sample.quarantined
    say(
        f"of the last {pluralize(sample.records, 'record')}, {fit:,} fit {pluralize(len(sample.windows), 'window')}, "
        f"{sample.quarantined:,} go to quarantine"
    )


def _name_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys and measures by the names that the TOML gives them."""
    named = {name.removeprefix("k_").removeprefix("m_"): value for name, value in row.items() if name != "event_ms"}
    return {**named, "event time": format_moment(from_ms(row["event_ms"]))}
