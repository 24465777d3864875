"""The table of a benchmark: rows of Onceover beside a peer, medians of alternating runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from onceover.config.endpoints import home


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `ratio` is ours / peer; `met` says whether ours reaches `goal`; a wrong result voids the row."""

    work: str
    ours: float
    peer: float
    peer_name: str
    unit: str
    ratio: float
    goal: str
    met: bool
    correct: bool
    runs: int


def alternate(ours: Callable[[], float], peer: Callable[[], float], runs: int) -> tuple[list[float], list[float]]:
    """Run both in turn, ours first, so that a drifting machine treats them alike, after one run of each to warm up."""
    of_ours, of_peer = alternate_all((ours, peer), runs)
    return of_ours, of_peer


def alternate_all(works: Sequence[Callable[[], float]], runs: int) -> list[list[float]]:
    """Run all in turn, as `alternate` does; return the seconds of each."""
    for work in works:
        work()
    rounds = [[work() for work in works] for _ in range(runs)]
    return [list(seconds) for seconds in zip(*rounds, strict=True)]


def runs() -> int:
    """Return how often each is run: once with BENCH=quick."""
    return 1 if os.environ.get("BENCH") == "quick" else 5


def results() -> Path:
    """Return the folder of the results."""
    return home() / ".local" / "bench"


def show(name: str, rows: Sequence[Row], notes: Sequence[str]) -> None:
    """Print the table and write `NAME.json`."""
    table = Table(title=name, title_justify="left")
    for column in ("work", "ours", "peer", "ratio", "goal", "met", "correct"):
        table.add_column(column, justify="left" if column in ("work", "goal") else "right")
    for row in rows:
        table.add_row(
            f"{row.work}, {row.unit}",
            _short(row.ours),
            _short(row.peer),
            f"{row.ratio:.2f}",
            row.goal,
            "yes" if row.met else "no",
            "yes" if row.correct else "VOID",
        )
    console = Console()
    console.print(table)
    for row in rows:
        console.print(f"peer of {row.work}: {row.peer_name}; medians of {row.runs} alternating runs")
    for note in notes:
        console.print(note)
    results().mkdir(parents=True, exist_ok=True)
    whole = {"rows": [asdict(row) for row in rows], "notes": list(notes)}
    (results() / f"{name}.json").write_text(json.dumps(whole, indent=2) + "\n")


def middle(values: Sequence[float]) -> float:
    return float(median(values))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
