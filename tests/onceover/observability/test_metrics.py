"""Metrics of made-up signals: names by Prometheus' rules, and no unknown value."""

from __future__ import annotations

import re
from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from tests.signals import FLIGHTS, NOON

from onceover.ledger.windows import WindowState
from onceover.model.finding_kinds import Kind
from onceover.observability.metric_values import Signals
from onceover.observability.metrics import METRICS, UP, build_metrics

UNKNOWN = replace(FLIGHTS, pipeline="new", progress_at=None, watermark=None, held_since=None, landed_at=None,
                  scheduling_delay=None, processing=None, kafka_partitions={}, windows={}, log_retention=None,
                  log_until=None)  # fmt: skip


def expose(*signals: Signals) -> str:
    """Render the text that Prometheus scrapes."""

    class FixedCollector(Collector):
        def collect(self) -> list[Metric]:
            return list(build_metrics(signals))

    registry = CollectorRegistry()
    registry.register(FixedCollector())
    return generate_latest(registry).decode()


def scrape(*signals: Signals) -> dict[tuple[str, ...], float]:
    """Return values by (name, label values in the order of their names), as Prometheus reads them."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(expose(*signals))
        for sample in family.samples
    }


def test_value_is_exposed_under_its_name_and_labels() -> None:
    values = scrape(FLIGHTS)
    noon = NOON.timestamp()
    expected: dict[tuple[str, ...], float] = {
        ("onceover_up",): 1,
        ("onceover_driver_state", "flights", "dead"): 1,
        ("onceover_driver_state", "flights", "alive"): 0,
        ("onceover_driver_state", "flights", "stopped"): 0,
        ("onceover_records_landed_total", "0", "flights"): 100,
        ("onceover_records_landed_total", "1", "flights"): 10,
        ("onceover_records_quarantined_total", "0", "flights"): 3,
        ("onceover_records_quarantined_total", "1", "flights"): 0,
        ("onceover_batches_total", "flights", "landed"): 7,
        ("onceover_batches_total", "flights", "superseded"): 2,
        ("onceover_lag_offsets", "0", "flights"): 5,
        ("onceover_lag_offsets", "1", "flights"): 0,
        ("onceover_hidden_offsets", "0", "flights"): 4,
        ("onceover_hidden_offsets", "1", "flights"): 0,
        ("onceover_first_hidden_offset", "0", "flights"): 104,
        ("onceover_hidden_since_timestamp_seconds", "0", "flights"): noon,
        ("onceover_largest_event_timestamp_seconds", "0", "flights"): noon,
        ("onceover_watermark_timestamp_seconds", "flights"): noon,
        ("onceover_watermark_held_since_timestamp_seconds", "flights"): noon,
        ("onceover_driver_progress_timestamp_seconds", "flights"): noon,
        ("onceover_unread_since_timestamp_seconds", "0", "flights"): noon,
        ("onceover_last_batch_scheduling_delay_seconds", "flights"): 1.5,
        ("onceover_last_batch_processing_seconds", "flights"): 2.25,
        ("onceover_last_batch_landed_timestamp_seconds", "flights"): noon,
        ("onceover_overdue_windows", "flights"): 2,
        ("onceover_hole_offsets", "flights", "expired"): 27,
        ("onceover_hole_offsets", "flights", "lost"): 0,
        ("onceover_records_skipped", "bytes", "flights"): 3,
        ("onceover_repaired_records_total", "too many", "flights"): 20,
        ("onceover_repaired_records_total", "too few", "flights"): 1,
        ("onceover_log_retention_seconds", "flights"): 3600,
        ("onceover_log_until_timestamp_seconds", "flights"): noon + 60,
        **{("onceover_windows", "flights", str(state)): 0 for state in WindowState},
        ("onceover_windows", "flights", "certified"): 40,
        ("onceover_windows", "flights", "blocked"): 1,
        **{("onceover_open_findings", str(kind), "flights"): 0 for kind in Kind},
        ("onceover_open_findings", "late", "flights"): 4,
    }
    assert values == expected


def test_unknown_value_is_not_exposed() -> None:
    names = {name for name, *_ in scrape(UNKNOWN)}
    assert not {n for n in names if "timestamp" in n or "last_batch" in n or "lag" in n or "retention" in n}
    assert {"onceover_windows", "onceover_batches_total"} <= names


def test_pipelines_are_exposed_side_by_side() -> None:
    values = scrape(FLIGHTS, UNKNOWN)
    assert {key[1] for key in values if key[0] == "onceover_overdue_windows"} == {"flights", "new"}


def test_names_follow_prometheus() -> None:
    names = [UP, *(each.name for each in METRICS)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"onceover_[a-z]+(_[a-z]+)*", name) for name in names)
    assert all(each.help.endswith(".") and each.label != "pipeline" for each in METRICS)
    assert not [name for name in names if re.search(r"_(ms|milliseconds|minutes|hours|ago|count|sum|bucket)$", name)]
