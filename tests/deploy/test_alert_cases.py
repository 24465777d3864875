"""The alert rules, evaluated by promtool over the cases of alerts.test.yml, whose series are those of the exporter."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.deploy.promql import EXPOSED, VALUES
from tests.deploy.promtool import run_promtool
from tests.onceover.observability.test_metrics import expose
from tests.signals import FLIGHTS

from onceover.ledger.windows import WindowState
from onceover.model.finding_kinds import Kind
from onceover.model.gap import Reason
from onceover.observability.metric_values import DriverState, KafkaPartitionProgress, Signals
from onceover.observability.metrics import METRICS

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "alerts.yml"
CASES = Path(__file__).with_name("alerts.test.yml")
GROUPS: list[dict[str, Any]] = yaml.safe_load(CASES.read_text())["tests"]
ALERTS = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
NEVER_A_RECORD, LANDS_RECORDS = (group["name"] for group in GROUPS[:2])
OF_PROMETHEUS = {"instance", "job"}
START = datetime(1970, 1, 1, tzinfo=UTC)  # of promtool's clock
WEEK = 604_800.0
NEW = Signals(
    pipeline="flights",
    driver=DriverState.ALIVE,
    progress_at=START,
    watermark=None,
    held_since=None,
    landed=0,
    superseded=0,
    kafka_partitions={number: KafkaPartitionProgress(0, 0, 0, None) for number in (0, 1)},
    windows={},
    overdue=0,
    log_retention=WEEK,
    log_until=None,
    findings={},
    holes={},
    too_many=0,
    too_few=0,
)
BUSY = replace(
    NEW,
    watermark=START - timedelta(seconds=640),
    landed=70,
    superseded=3,
    scheduling_delay=1.5,
    processing=2.25,
    landed_at=START - timedelta(seconds=20),
    kafka_partitions={
        0: KafkaPartitionProgress(9000, 30, 120, START - timedelta(seconds=40), START - timedelta(seconds=30)),
        1: KafkaPartitionProgress(500, 400, 0, START - timedelta(days=1)),
    },
    windows={WindowState.OPEN: 2, WindowState.CLOSED: 1, WindowState.FAILED: 1, WindowState.REPAIRING: 1,
             WindowState.CERTIFIED: 40, WindowState.EXPIRED: 300},
    log_until=WEEK - 7200,
    findings={Kind.LATE: 4, Kind.HOLE: 1, Kind.DUPLICATED: 1},
    holes={Reason.LOST: 12},
    too_many=20,
    too_few=1,
)  # fmt: skip


def parse(series: str) -> tuple[str, dict[str, str]]:
    """Return the name and the labels of a series."""
    found = re.fullmatch(r"(\w+)\{(.*)\}", series)
    assert found, series
    return found[1], dict(re.findall(r'(\w+)="([^"]*)"', found[2]))


def series_at_start(group: dict[str, Any]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the first value of each series, without the labels that Prometheus adds."""
    at_start = {}
    for each in group["input_series"]:
        name, labels = parse(each["series"])
        first = re.match(r"-?[\d.]+", each["values"])
        assert first, each
        at_start[name, frozenset((k, v) for k, v in labels.items() if k not in OF_PROMETHEUS)] = float(first[0])
    return at_start


def test_cases_of_alerts_hold() -> None:
    run = run_promtool("test", "rules", CASES)
    assert run.returncode == 0, run.stdout + run.stderr


def test_promtool_finds_no_mistake_in_the_rules() -> None:
    run = run_promtool("check", "rules", RULES)
    assert (run.returncode, f"{len(ALERTS)} rules found" in run.stdout) == (0, True), run.stdout + run.stderr


@pytest.mark.parametrize("signals", [FLIGHTS, NEW, BUSY], ids=["sick", "new", "busy"])
def test_promtool_finds_no_mistake_in_the_metrics(signals: Signals) -> None:
    run = run_promtool("check", "metrics", given=expose(signals))
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_fires_and_is_silent_in_some_case(alert: str) -> None:
    """The same series fire at one moment and not at another, and nothing fires where a pipeline has no records."""
    checks = [(group["name"], check["exp_alerts"]) for group in GROUPS for check in group.get("alert_rule_test", [])
              if check["alertname"] == alert]  # fmt: skip
    firing = {name for name, alerts in checks if alerts}
    silent = {name for name, alerts in checks if not alerts}
    assert firing & silent
    assert NEVER_A_RECORD in silent - firing
    assert all(each["exp_annotations"] for _, alerts in checks for each in alerts)


def test_cases_are_about_alerts_that_exist() -> None:
    checked = {check["alertname"] for group in GROUPS for check in group.get("alert_rule_test", [])}
    assert checked == set(ALERTS)
    queries = [check["expr"] for group in GROUPS for check in group.get("promql_expr_test", [])]
    named = {name for query in queries for name in re.findall(r'alertname!?="(\w+)"', query)}
    assert named <= set(ALERTS)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: str(group["name"]))
def test_series_have_names_and_labels_of_the_exporter(group: dict[str, Any]) -> None:
    labels_besides = {each.name: each.label for each in METRICS}
    for each in group["input_series"]:
        name, labels = parse(each["series"])
        assert labels.keys() == OF_PROMETHEUS | set(EXPOSED[name]), each
        label = labels_besides.get(name)
        if label and label != "kafka_partition":
            assert labels[label] in VALUES[name, label], each


@pytest.mark.parametrize(("name", "signals"), [(NEVER_A_RECORD, NEW), (LANDS_RECORDS, BUSY)], ids=["new", "busy"])
def test_series_of_a_whole_pipeline_are_as_exposed(name: str, signals: Signals) -> None:
    (group,) = (group for group in GROUPS if group["name"] == name)
    exposed = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(expose(signals))
        for sample in family.samples
    }
    assert series_at_start(group) == exposed
