"""Tables: plain text for a task's log, rows small enough for XCom, and Markdown for a DAG's document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onceover.explain.local_times import format_window
from onceover.model.finding_kinds import as_markdown
from onceover.printable import escape

XCOM_ROWS = 500
EVIDENCE_WIDTH = 240


def format_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Align columns in the order of the first row, numbers to the right."""
    if not rows:
        return "(none)"
    names = list(rows[0])
    cells = [[_shown(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    numeric = [all(isinstance(row.get(name), int | float) for row in rows) for name in names]
    lines = [names, ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(c.rjust(w) if n else c.ljust(w) for c, w, n in zip(line, widths, numeric, strict=True)).rstrip()
        for line in lines
    )


def evidence_table(windows: Sequence[Mapping[str, Any]]) -> str:
    """Write one line a finding: the window, the finding's kind, and its evidence, cut to a line."""
    return format_table(
        [
            {
                "window": format_window(each),
                "finding": finding["kind"],
                "evidence": _cut(_shown({name: held for name, held in finding.items() if name != "kind"})),
            }
            for each in windows
            for finding in each["findings"] or [{"kind": "none, repaired by force"}]
        ]
    )


def with_findings(document: str) -> str:
    """Append the meaning of each kind of finding to a DAG's document."""
    return f"{document}\n### What a finding means\n\n{as_markdown()}\n"


def shorten(record: Mapping[str, object], limit: int = XCOM_ROWS) -> dict[str, Any]:
    """Cut long lists and add how many rows were left out. The ledger has all of them; XCom is not a store."""
    short: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, list) and len(value) > limit:
            short[name] = value[:limit]
            short[f"{name}_left_out"] = len(value) - limit
        else:
            short[name] = value
    return short


def _cut(text: str) -> str:
    return text or "-" if len(text) <= EVIDENCE_WIDTH else text[: EVIDENCE_WIDTH - 3] + "..."


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return " ".join(f"{escape(str(name))}={_shown(held)}" for name, held in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_shown(item) for item in value)
    return escape(str(value))
