"""The dashboard: of Grafana's form, about metrics that are exposed, with panels that do not lie on each other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.promql import EXPOSED, labels_of, metrics_of, mistakes_of

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
KEYS = {"id", "type", "title", "gridPos", "datasource", "targets", "fieldConfig", "options"}


def test_file_has_the_form_of_a_dashboard() -> None:
    """The parts that this dashboard uses of Grafana's dashboard model."""
    assert DASHBOARD.get("id") is None, "Grafana numbers it"
    assert re.fullmatch("[a-zA-Z0-9_-]{1,40}", DASHBOARD["uid"])
    assert DASHBOARD["title"]
    assert DASHBOARD["schemaVersion"] >= 36
    assert DASHBOARD["time"].keys() >= {"from", "to"}
    variables = DASHBOARD["templating"]["list"]
    assert [each["name"] for each in variables] == ["datasource", "pipeline", "airflow"]
    assert all("query" in each and each["type"] in ("datasource", "query", "textbox") for each in variables)
    assert len({panel["id"] for panel in PANELS}) == len(PANELS) > 0


@pytest.mark.parametrize("panel", PANELS, ids=lambda each: str(each["title"]))
def test_panel_has_the_form_of_a_panel(panel: dict[str, Any]) -> None:
    assert panel.keys() >= KEYS
    assert panel["id"] >= 1
    assert panel["type"] in ("stat", "timeseries")
    assert panel["title"]
    assert panel["fieldConfig"].keys() >= {"defaults", "overrides"}
    assert panel["targets"]
    for target in panel["targets"]:
        assert target.keys() >= {"refId", "expr", "datasource", "legendFormat"}
        assert re.fullmatch("[A-Z]", target["refId"])
    assert [each["datasource"] for each in (panel, *panel["targets"])] == [SOURCE] * (1 + len(panel["targets"]))
    at = panel["gridPos"]
    assert at.keys() == {"h", "w", "x", "y"}
    assert min(at["h"], at["w"]) >= 1
    assert min(at["x"], at["y"]) >= 0


def test_no_panel_lies_on_another_or_beyond_the_edge() -> None:
    taken: set[tuple[int, int]] = set()
    for at in (panel["gridPos"] for panel in PANELS):
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells


@pytest.mark.parametrize("panel", PANELS, ids=lambda each: str(each["title"]))
def test_panel_uses_only_exposed_metrics(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        expression = target["expr"]
        assert metrics_of(expression)
        assert mistakes_of(expression) == []
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels_of(expression)


def test_metric_is_on_the_dashboard_or_in_an_alert() -> None:
    shown = {name for panel in PANELS for target in panel["targets"] for name in metrics_of(target["expr"])}
    assert EXPOSED.keys() == shown | metrics_of((ROOT / "deploy" / "alerts.yml").read_text())


def test_panels_of_a_pipeline_open_its_page() -> None:
    of_pipelines = [each for each in PANELS if "pipeline" in each["targets"][0]["legendFormat"]]
    assert len(of_pipelines) == len(PANELS) - 1
    for panel in of_pipelines:
        (link,) = panel["fieldConfig"]["defaults"]["links"]
        assert link["url"] == "${airflow}/onceover/${__field.labels.pipeline}", panel["title"]
