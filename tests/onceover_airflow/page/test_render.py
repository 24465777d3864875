"""Nothing that a record, a reason, a name or an error contains becomes markup, on any page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from onceover.explain.page.ingest import IngestLine
from onceover.explain.page.losses import Loss
from onceover.explain.page.trouble import TroublePage
from onceover.ledger.takings import Taking
from onceover.ledger.windows import WindowState
from onceover.model.finding import Finding
from onceover.model.finding_kinds import Kind
from onceover.model.offsets import KafkaPartition, OffsetRange
from onceover.model.window import WindowRange
from onceover.model.windowing import Windowing
from onceover.observability.metric_values import DriverState

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("default")]

HOSTILE: Final = "'\"><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}"
AT: Final = datetime(2013, 1, 5, 14, tzinfo=UTC)
WINDOW: Final = Windowing(60).window_at(AT)
SPAN: Final = WindowRange(WINDOW.start, WINDOW.end)


class Shown(dict[str, Any]):
    """What a page shows: each value that is not named here is hostile."""

    def __missing__(self, key: str) -> str:
        return HOSTILE


ROW: Final = Shown(start=AT, end=WINDOW.end, finished_at=AT, blocked=True, before=1, after=2)
TAKEN: Final = Taking(AT, WINDOW.end, 1, HOSTILE, HOSTILE, HOSTILE, AT)
FINDING: Final = Shown(first_seen_at=AT, since=AT)
TROUBLE: Final = Shown(
    start=AT, end=WINDOW.end, windows=1, findings=[HOSTILE], since=AT, difference=None, log_until=AT, tries=3
)
LANDING: Final = Shown(
    landing_id=1, batch_id=1, byte_start=0, byte_end=9, records=1, landed_at=AT, offset_ranges=[[HOSTILE, 0, 0, 1]]
)
KNOWN: Final = Shown(
    notes=[HOSTILE],
    findings_of_pipeline=[FINDING],
    findings=[FINDING, {"kind": "late", "what": HOSTILE, "how": HOSTILE}],  # the second has just been judged
    next_steps=[Shown()],
    counts={"lines": 2, "distinct": None, "counted": 2, "certified": None},
    places=[HOSTILE],
    ledger={
        "taken": [TAKEN],
        "losses": [Shown()],
        "repairs": [Shown(request_id=7, before={"revision": 1})],
        "landings": [LANDING],
        "left_out": {"landings": 0},
    },
)


class _Planned:
    """A planned window; PlannedRepair itself takes no hostile kind."""

    window, lines, counted, distinct, change = WINDOW, 1, None, 1, None
    findings = (Finding(Kind.LATE, {}),)


PLAN: Final = {
    "token": HOSTILE,
    "windows": [_Planned()],
    "changing": 1,
    "totals": {"windows": 1, "lines": 1, "bytes": 1, "change": 0, "unknown_changes": 1, "missing_files": 0},
}
PAGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "pipelines.html": {
        "pipelines": [
            Shown(driver=DriverState.DEAD, watermark=AT, windows={WindowState.FAILED: 1}, overdue=1, holes={},
                  wrong={"windows": 1, "too_many": 1, "too_few": 1, "since": AT}, log_until=AT, running=[],
                  taken=[TAKEN])
        ],
        "idle": [HOSTILE],
    },
    "idle.html": {"pipeline": HOSTILE},
    "refusal.html": {"title": "No", "detail": HOSTILE},
    "pipeline.html": {
        "pipeline": HOSTILE,
        "ingest": IngestLine(DriverState.DEAD, HOSTILE, HOSTILE, HOSTILE),
        "losses": [Loss(OffsetRange(KafkaPartition("1f2e3d4c", 0), 5, 12), HOSTILE, False, AT, WINDOW.end)],
        "may": lambda dag: False,
        "windowing": Windowing(60, HOSTILE, ((0, 3600),)),
        "year": 2026,
        "watermark": AT,
        "counts": {"failed": 1},
        "start": AT,
        "end": AT,
        "day": None,
        "trouble": TroublePage((TROUBLE,), AT),
        "together": (AT, WINDOW.end),
        "holes": [FINDING],
        "history": [Shown(at=AT, windows=1)],
    },
    "window.html": {
        "windowing": Windowing(60),
        "pipeline": HOSTILE,
        "window": WINDOW,
        "known": KNOWN,
        "is_reread": True,
        "span": SPAN,
        "plan": PLAN,
        "closed": 0,
        "force": True,
        "not_planned": None,
        "why": HOSTILE,
        "may": lambda dag: False,
    },
    "range.html": {
        "is_migrated": True,
        "windowing": Windowing(60, HOSTILE, ((0, 3600),)),
        "pipeline": HOSTILE,
        "span": SPAN,
        "plan": PLAN,
        "states": {"f": 1},
        "closed": 0,
        "taken": [TAKEN],
        "force": False,
        "why": HOSTILE,
        "may": lambda dag: True,
    },
    "run.html": {
        "dag_id": HOSTILE,
        "run_id": HOSTILE,
        "requests": [
            Shown(request_id=1, created_at=AT, states={}, total=1, certified=0, done=False, windows=[ROW])
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("template", PAGES)
def test_hostile_text_is_shown_and_is_no_markup(template: str) -> None:
    from onceover_airflow.page.render import render

    page = bytes(render(template, **PAGES[template]).body).decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "alert(1)</script>" not in page
    assert "<img" not in page
    assert "49" not in page


def test_every_template_is_tried_with_hostile_text() -> None:
    from importlib.resources import files

    there = {each.name for each in files("onceover_airflow.page").joinpath("templates").iterdir()}
    assert there - {"base.html", "_repair.html", "_button.html", "_take.html"} == set(PAGES)


def test_signs_and_words_of_the_strip_are_of_the_same_states() -> None:
    from onceover.explain.page.strip import MEANINGS
    from onceover_airflow.page.render import GLYPHS

    assert set(GLYPHS) >= set(MEANINGS)
    assert len(set(GLYPHS.values())) == len(GLYPHS), "two states have one sign"
