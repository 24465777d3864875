"""Every metric there is: its name with the unit, its labels, what it means, and where its values come from.

Names follow Prometheus: seconds, Unix time for moments, `_total` for what only grows. Each has the label `pipeline`
first, but for `onceover_up`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from onceover.ledger.queries import WindowState
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Reason
from onceover.observability.snapshot import DriverState, KafkaPartitionProgress, LastBatch, Signals

Values = Mapping[str, float | None]
"""By the value of the one label besides `pipeline`; "" where there is none. What nobody knows (None) is left out."""


@dataclass(frozen=True, slots=True)
class MetricDeclaration:
    """One metric. It is a counter if its name says so, else a gauge."""

    name: str
    help: str
    values: Callable[[Signals], Values]
    label: str | None = None

    @property
    def is_counter(self) -> bool:
        return self.name.endswith("_total")

    @property
    def labels(self) -> tuple[str, ...]:
        return ("pipeline",) if self.label is None else ("pipeline", self.label)


def _each(value: Callable[[KafkaPartitionProgress], float | None]) -> Callable[[Signals], Values]:
    return lambda s: {str(number): value(progress) for number, progress in s.kafka_partitions.items()}


def _one(value: Callable[[Signals], float | None]) -> Callable[[Signals], Values]:
    return lambda s: {"": value(s)}


def _last(value: Callable[[LastBatch], float | None]) -> Callable[[Signals], Values]:
    return lambda s: {"": value(s.last_batch) if s.last_batch else None}


def _moment(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None


UP: Final = "onceover_up"
UP_HELP: Final = "1 if the ledger answered this scrape, 0 if it did not; then nothing else is there."

METRICS: Final = (
    MetricDeclaration(
        "onceover_driver_state",
        "1 for the state the driver is in: alive, stopped (it was told to), dead (its heartbeat ran out).",
        lambda s: {state: float(s.driver is state) for state in DriverState},
        "state",
    ),
    MetricDeclaration(
        "onceover_records_landed_total",
        "Records landed, in window files or in quarantine. One that landed again counts again.",
        _each(lambda p: p.landed),
        "kafka_partition",
    ),
    MetricDeclaration(
        "onceover_records_quarantined_total",
        "Records landed in quarantine.",
        _each(lambda p: p.quarantined),
        "kafka_partition",
    ),
    MetricDeclaration(
        "onceover_batches_total",
        "Batches that landed, and those that were superseded: failed attempts, and what a dead driver had begun.",
        lambda s: {"landed": s.landed, "superseded": s.superseded},
        "state",
    ),
    MetricDeclaration(
        "onceover_lag_offsets",
        "Offsets not read yet, as the driver last saw the log's end.",
        _each(lambda p: p.lag),
        "kafka_partition",
    ),
    MetricDeclaration(
        "onceover_largest_event_timestamp_seconds",
        "Largest event time of the unbroken prefix that was read.",
        _each(lambda p: _moment(p.largest_event_time)),
        "kafka_partition",
    ),
    MetricDeclaration(
        "onceover_watermark_timestamp_seconds",
        "The watermark: windows that end before it are closed.",
        _one(lambda s: _moment(s.watermark)),
    ),
    MetricDeclaration(
        "onceover_last_batch_scheduling_delay_seconds",
        "From the submission of the last batch that landed to its start.",
        _last(lambda b: b.scheduling_delay),
    ),
    MetricDeclaration(
        "onceover_last_batch_processing_seconds",
        "From the start of the last batch that landed to its landing.",
        _last(lambda b: b.processing),
    ),
    MetricDeclaration(
        "onceover_last_batch_landed_timestamp_seconds",
        "When the last batch landed.",
        _last(lambda b: b.landed_at.timestamp()),
    ),
    MetricDeclaration(
        "onceover_windows",
        "Windows by where they stand, as `onceover windows` lists them.",
        lambda s: {state: s.windows.get(state, 0) for state in WindowState},
        "state",
    ),
    MetricDeclaration(
        "onceover_overdue_windows",
        "Windows that have been closed for long and are neither certified nor blocked.",
        _one(lambda s: s.overdue),
    ),
    MetricDeclaration(
        "onceover_open_findings",
        "Findings that are not resolved.",
        lambda s: {kind: s.findings.get(kind, 0) for kind in Kind},
        "kind",
    ),
    MetricDeclaration(
        "onceover_hole_offsets",
        "Offsets that were skipped and whose records are lost (Kafka still has them) or expired (it has not).",
        lambda s: {reason: s.holes.get(reason, 0) for reason in Reason if reason.is_loss},
        "reason",
    ),
    MetricDeclaration(
        "onceover_repaired_records_total",
        "Records that near-real-time aggregates counted too many or too few, by the windows repaired since.",
        lambda s: {"too many": s.too_many, "too few": s.too_few},
        "error",
    ),
    MetricDeclaration(
        "onceover_log_until_timestamp_seconds",
        "Until when Kafka holds every record of the windows that are not certified.",
        _one(lambda s: s.log_until),
    ),
    MetricDeclaration(
        "onceover_log_retention_seconds",
        "How long Kafka keeps records of the topic; not there if for ever, or if nobody knows.",
        _one(lambda s: s.log_retention),
    ),
)


def build_metrics(signals: Iterable[Signals]) -> Iterator[Metric]:
    """All metrics of these pipelines."""
    known = tuple(signals)
    yield build_up_metric(True)
    for each in METRICS:
        make = CounterMetricFamily if each.is_counter else GaugeMetricFamily
        family = make(each.name, each.help, labels=each.labels)
        for pipeline in known:
            for label, value in each.values(pipeline).items():
                if value is not None:
                    family.add_metric([pipeline.pipeline, *([label] if each.label else [])], value)
        yield family


def build_up_metric(answered: bool) -> Metric:
    return GaugeMetricFamily(UP, UP_HELP, value=float(answered))
