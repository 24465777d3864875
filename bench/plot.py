"""How a benchmark went, as a picture and as the numbers behind it."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import matplotlib

from bench.table import results

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (after the backend is chosen: there is no display)


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of one batch: when, what it was allowed, how many records lay behind it, how many ms it had waited."""

    seconds: float
    rate: float
    backlog: int
    delay_ms: float


def plot(courses: Mapping[str, Sequence[Moment]], name: str) -> None:
    """Writes `NAME.png` and `NAME.csv` beside the other results: rate, backlog and delay over time, a line a peer."""
    results().mkdir(parents=True, exist_ok=True)
    with (results() / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("peer", "seconds", "rate", "backlog", "delay_ms"))
        for peer, course in courses.items():
            writer.writerows((peer, *astuple(moment)) for moment in course)
    figure, panels = pyplot.subplots(3, 1, sharex=True, figsize=(9, 7), layout="constrained")
    for label, panel, of in (
        ("rate, records/s", panels[0], lambda moment: moment.rate if moment.rate < 1e8 else float("nan")),
        ("backlog, records", panels[1], lambda moment: moment.backlog),
        ("delay, ms", panels[2], lambda moment: moment.delay_ms),
    ):
        for peer, course in courses.items():
            panel.plot([moment.seconds for moment in course], [of(moment) for moment in course], label=peer, lw=1.4)
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    panels[0].legend(loc="upper right", fontsize="small")
    panels[2].set_xlabel("seconds")
    figure.savefig(results() / f"{name}.png", dpi=110)
    pyplot.close(figure)
