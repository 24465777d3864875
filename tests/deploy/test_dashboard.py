"""The dashboard: of Grafana's form, about metrics that are exposed, with panels that do not lie on each other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.deploy.promql import EXPOSED, labels_of, metrics_of, mistakes_of

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SOURCE = {"const": {"type": "prometheus", "uid": "${datasource}"}}
# The parts that this dashboard uses of Grafana's dashboard model, with their bounds.
FORM = {
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "panels", "templating", "time"],
    "properties": {
        "id": {"type": "null"},
        "uid": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,40}$"},
        "title": {"type": "string", "minLength": 1},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "time": {"type": "object", "required": ["from", "to"]},
        "templating": {
            "type": "object",
            "required": ["list"],
            "properties": {
                "list": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name", "type", "query"],
                        "properties": {"type": {"enum": ["datasource", "query", "textbox"]}},
                    },
                }
            },
        },
        "panels": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id", "type", "title", "gridPos", "datasource", "targets", "fieldConfig", "options"],
                "properties": {
                    "id": {"type": "integer", "minimum": 1},
                    "type": {"enum": ["stat", "timeseries"]},
                    "title": {"type": "string", "minLength": 1},
                    "datasource": SOURCE,
                    "gridPos": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["h", "w", "x", "y"],
                        "properties": {
                            "h": {"type": "integer", "minimum": 1},
                            "w": {"type": "integer", "minimum": 1, "maximum": 24},
                            "x": {"type": "integer", "minimum": 0, "maximum": 23},
                            "y": {"type": "integer", "minimum": 0},
                        },
                    },
                    "fieldConfig": {"type": "object", "required": ["defaults", "overrides"]},
                    "targets": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["refId", "expr", "datasource", "legendFormat"],
                            "properties": {"refId": {"type": "string", "pattern": "^[A-Z]$"}, "datasource": SOURCE},
                        },
                    },
                },
            },
        },
    },
}


def test_file_has_the_form_of_a_dashboard() -> None:
    jsonschema.validate(DASHBOARD, FORM)
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["datasource", "pipeline", "airflow"]


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
