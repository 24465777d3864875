"""The alert rules: of Prometheus' form, about metrics that are exposed, each with a section of the runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.promql import labels_of, metrics_of, mistakes_of
from tests.docs.pages import anchor, read

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "deploy" / "alerts.yml").read_text())
ALERTS: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]


def test_rules_have_names_of_their_own_and_what_a_person_needs() -> None:
    """That the file has Prometheus' form is promtool's to say: test_alert_cases.py."""
    assert len({each["alert"] for each in ALERTS}) == len(ALERTS)
    for alert in ALERTS:
        assert re.fullmatch("Onceover[A-Za-z]+", alert["alert"])
        assert "severity" in alert["labels"]
        assert {"summary", "description", "runbook", "page"} <= alert["annotations"].keys()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: str(each["alert"]))
def test_alert_uses_only_exposed_metrics(alert: dict[str, Any]) -> None:
    assert metrics_of(alert["expr"])
    assert mistakes_of(alert["expr"]) == []
    text = " ".join(alert["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", text)) <= {"pipeline", *labels_of(alert["expr"].split(" or ")[0])}


def test_metric_that_is_not_exposed_is_noticed() -> None:
    assert mistakes_of("onceover_nosuch > 0") == ["onceover_nosuch"]
    assert mistakes_of('onceover_windows{kind="late"} > 0') == ["onceover_windows{kind}"]
    assert mistakes_of('onceover_windows{state="broken"} > 0') == ['onceover_windows{state="broken"}']
    assert mistakes_of('onceover_windows{state!~"open|shut"} > 0') == ['onceover_windows{state="shut"}']
    assert mistakes_of("sum by (kafka_partition) (onceover_overdue_windows)") == ["kafka_partition"]
    assert mistakes_of("onceover_lag_offsets + ignoring (state) onceover_overdue_windows") == ["state"]
    assert mistakes_of("onceover_lag_offsets + ignoring (kafka_partition) onceover_overdue_windows") == []


def test_alerts_and_runbook_sections_match() -> None:
    sections = re.split(r"^### ", read("docs/runbook.md").section("Alerts"), flags=re.MULTILINE)[1:]
    there = {f"docs/runbook.md#{anchor(text.splitlines()[0])}": text for text in sections}
    named = {alert["annotations"]["runbook"]: alert["alert"] for alert in ALERTS}
    assert named.keys() == there.keys()
    for runbook, alert in named.items():
        assert there[runbook].split("\n\n")[1].startswith(f"`{alert}`: ")
        assert "\n    onceover " in there[runbook], "a command to run"


def test_pages_say_how_many_alerts_there_are() -> None:
    number = {10: "ten", 11: "eleven", 12: "twelve"}[len(ALERTS)]
    assert f"these {number} alerts" in read("docs/runbook.md").text
    assert f"{number} alerts" in (ROOT / "CHANGELOG.md").read_text()
