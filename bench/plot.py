"""A benchmark's course over time, as a picture and as the numbers behind it."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from math import isfinite, nan

import matplotlib

from bench.table import results

matplotlib.use("Agg")
from matplotlib import pyplot


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of one batch: its time, its limit, the records still waiting, and its delay in ms."""

    seconds: float
    rate: float
    backlog: int
    delay_ms: float


def plot(courses: Mapping[str, Sequence[Moment]], name: str) -> None:
    """Write `NAME.png` and `NAME.csv` beside the other results: rate, backlog and delay over time, a line a peer."""
    results().mkdir(parents=True, exist_ok=True)
    with (results() / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("peer", "seconds", "rate", "backlog", "delay_ms"))
        for peer, course in courses.items():
            writer.writerows((peer, *astuple(moment)) for moment in course)
    figure, panels = pyplot.subplots(3, 1, sharex=True, figsize=(9, 7), layout="constrained")
    for peer, course in courses.items():
        seconds = [moment.seconds for moment in course]
        panels[0].plot(seconds, [moment.rate if isfinite(moment.rate) else nan for moment in course], label=peer)
        panels[1].plot(seconds, [moment.backlog for moment in course])
        panels[2].plot(seconds, [moment.delay_ms for moment in course])
    for label, panel in zip(("rate, records/s", "backlog, records", "delay, ms"), panels, strict=True):
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    panels[0].legend(loc="upper right", fontsize="small")
    panels[2].set_xlabel("seconds")
    figure.savefig(results() / f"{name}.png", dpi=110)
    pyplot.close(figure)
