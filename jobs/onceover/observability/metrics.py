"""All metrics: name with the unit, label, meaning, and source of the values.

Names follow Prometheus: seconds, Unix time for moments, `_total` for counters. Each metric but `onceover_up` has
the label `pipeline` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from onceover.ledger.windows import WindowState
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Reason
from onceover.observability.metric_values import DriverState, KafkaPartitionProgress, Signals

Values = Mapping[str, float | None]
"""Values by the label besides `pipeline`, or by "" without such a label. Unknown values (None) are left out."""


@dataclass(frozen=True, slots=True)
class MetricDeclaration:
    """A metric: a counter if its name ends with `_total`, else a gauge."""

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


def _moment(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None


UP: Final = "onceover_up"
UP_HELP: Final = "1 if the ledger answered this scrape, 0 if it did not; then no other metric is exposed."

METRICS: Final = (
    MetricDeclaration(
        "onceover_driver_state",
        "1 for the state the driver is in: alive, stopped (on request), dead (its heartbeat expired).",
        lambda s: {state: float(s.driver is state) for state in DriverState},
        "state",
    ),
    MetricDeclaration(
        "onceover_driver_progress_timestamp_seconds",
        "When a turn of the driver's loop last ended well, with a landed batch or with nothing to read.",
        _one(lambda s: _moment(s.progress_at)),
    ),
    MetricDeclaration(
        "onceover_records_landed_total",
        "Records landed, in window files or in quarantine. A record that landed again counts again.",
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
        "Batches that landed, and those that were superseded: failed attempts, and batches of a dead driver.",
        lambda s: {"landed": s.landed, "superseded": s.superseded},
        "state",
    ),
    MetricDeclaration(
        "onceover_lag_offsets",
        "Offsets not read yet, as the driver last saw the log's end (the high watermark).",
        _each(lambda p: p.lag),
        "kafka_partition",
    ),
    MetricDeclaration(
        "onceover_unread_since_timestamp_seconds",
        "No unread record is older than this, by its Kafka timestamp.",
        _each(lambda p: _moment(p.unread_since)),
        "kafka_partition",
    ),
    MetricDeclaration(
        "onceover_hidden_offsets",
        "Those of the unread offsets that an open transaction hides from readers of committed records.",
        _each(lambda p: p.hidden),
        "kafka_partition",
    ),
    MetricDeclaration(
        "onceover_first_hidden_offset",
        "The first of the hidden offsets, the last stable offset.",
        _each(lambda p: p.first_hidden),
        "kafka_partition",
    ),
    MetricDeclaration(
        "onceover_hidden_since_timestamp_seconds",
        "When ingest first saw the open transaction that hides them.",
        _each(lambda p: _moment(p.hidden_since)),
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
        "onceover_watermark_held_since_timestamp_seconds",
        "Since when the watermark has not moved although a Kafka partition is beyond it.",
        _one(lambda s: _moment(s.held_since)),
    ),
    MetricDeclaration(
        "onceover_last_batch_scheduling_delay_seconds",
        "From the submission of the last batch that landed to its start.",
        _one(lambda s: s.scheduling_delay),
    ),
    MetricDeclaration(
        "onceover_last_batch_processing_seconds",
        "From the start of the last batch that landed to its landing.",
        _one(lambda s: s.processing),
    ),
    MetricDeclaration(
        "onceover_last_batch_landed_timestamp_seconds",
        "When the last batch landed.",
        _one(lambda s: _moment(s.landed_at)),
    ),
    MetricDeclaration(
        "onceover_windows",
        "Windows by state, as `onceover windows` lists them.",
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
        "Skipped offsets whose records are lost (Kafka still has them) or expired (it no longer has them).",
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
        "onceover_records_skipped",
        "Records of the last day that a measure skipped because its SQL had no exact result, with on_null = skip.",
        lambda s: {measure: float(records) for measure, records in s.skipped.items()},
        "measure",
    ),
    MetricDeclaration(
        "onceover_writer_schemas",
        "Schemas of a registry that values were written with, by what the contract makes of their records.",
        lambda s: {("read" if is_read else "quarantined"): float(count) for is_read, count in s.schemas.items()},
        "fate",
    ),
    MetricDeclaration(
        "onceover_log_until_timestamp_seconds",
        "Until when Kafka holds every record of the windows that are not certified.",
        _one(lambda s: s.log_until),
    ),
    MetricDeclaration(
        "onceover_log_retention_seconds",
        "How long Kafka keeps records of the topic; not exposed if for ever or unknown.",
        _one(lambda s: s.log_retention),
    ),
)


def build_metrics(signals: Iterable[Signals]) -> Iterator[Metric]:
    """Yield all metrics of these pipelines."""
    pipelines = tuple(signals)
    yield build_up_metric(True)
    for declaration in METRICS:
        make = CounterMetricFamily if declaration.is_counter else GaugeMetricFamily
        family = make(declaration.name, declaration.help, labels=declaration.labels)
        for pipeline in pipelines:
            for label, value in declaration.values(pipeline).items():
                if value is not None:
                    family.add_metric([pipeline.pipeline, *([label] if declaration.label else [])], value)
        yield family


def build_up_metric(answered: bool) -> Metric:
    return GaugeMetricFamily(UP, UP_HELP, value=float(answered))
