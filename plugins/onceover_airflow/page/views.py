"""The pages: all pipelines, one pipeline's windows, one window, a range before its repair, a run."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from onceover.config.pipelines import names
from onceover.detection.future_range import resolve_window
from onceover.errors import OnceoverError, UsageError
from onceover.explain.page.history import list_holes, read_history
from onceover.explain.page.ingest import read_ingest
from onceover.explain.page.losses import list_losses
from onceover.explain.page.pipelines import list_pipelines
from onceover.explain.page.run import read_request, read_run
from onceover.explain.page.strip import read_strip
from onceover.explain.page.trouble import list_trouble
from onceover.explain.page.window import read_window
from onceover.ledger.frontiers import read_holes
from onceover.ledger.takings import list_takings
from onceover.ledger.windows import count_by_state, read_last_end
from onceover.model.window import WindowRange, parse_moment
from onceover_airflow.page.days import draw_day
from onceover_airflow.page.gate import User, may_start
from onceover_airflow.page.plan import MAX_DAYS, plan_windows, read_plan
from onceover_airflow.page.reading import read_ledger, read_pipeline
from onceover_airflow.page.render import render

router = APIRouter(default_response_class=HTMLResponse)
Text = Annotated[str | None, Query(max_length=2_000)]


@router.get("/")
def show_pipelines() -> HTMLResponse:
    """Show every pipeline that ever ran, worst first, and the names of those that did not."""
    with read_ledger() as ledger:
        pipelines = list_pipelines(ledger)
    idle = sorted(set(names()) - {each["name"] for each in pipelines})
    return render("pipelines.html", pipelines=pipelines, idle=idle)


@router.get("/requests/{request_id}")
def show_request(request_id: int) -> HTMLResponse:
    """Show a repair request, whatever made it."""
    with read_ledger() as ledger:
        request = read_request(ledger, request_id)
    return render("run.html", dag_id=request["dag_id"], run_id=request["run_id"], requests=[request])


@router.get("/runs/{dag_id}/{run_id:path}")
def show_run(dag_id: str, run_id: str) -> HTMLResponse:
    """Show how far a run of Airflow is, by what the ledger says of each of its windows."""
    with read_ledger() as ledger:
        requests = read_run(ledger, dag_id, run_id)
    return render("run.html", dag_id=dag_id, run_id=run_id, requests=requests)


@router.get("/{pipeline}")
def show_pipeline(
    user: User,
    pipeline: str,
    year: Annotated[int | None, Query(ge=1970, le=9998)] = None,
    day: Annotated[str | None, Query(pattern=r"^\d{4}-\d\d-\d\d$")] = None,
    after: Text = None,
    before: Text = None,
) -> HTMLResponse:
    """Show a year of windows, or a day; below it what is wrong, what was skipped, and who did what."""
    chosen = parse_moment(f"{day}T00:00Z").date() if day else None
    if chosen and not 1970 <= chosen.year <= 9998:
        raise UsageError(f"day {day} is in no year that the page shows; choose one from 1970 to 9998")
    with read_pipeline(pipeline) as context:
        ledger = context.ledger
        if not context.is_registered():
            return render("idle.html", pipeline=pipeline)
        last = read_last_end(ledger, context.name) or datetime.now(UTC)
        windowing, holes = context.read_registration().windowing, list_holes(ledger, context.name)
        trouble = list_trouble(ledger, context.name, after=parse_moment(after) if after else None)
        shown = year or (chosen or windowing.local_day(last - timedelta(microseconds=1))).year
        return render(
            "pipeline.html",
            pipeline=context.name,
            may=partial(may_start, user),
            windowing=windowing,
            year=shown,
            ingest=read_ingest(ledger, context.name),
            watermark=context.read_registration().watermark,
            counts=count_by_state(ledger, context.name),
            start=windowing.begin_day(date(shown, 1, 1)),
            end=windowing.begin_day(date(shown + 1, 1, 1)),
            day=draw_day(ledger, context.name, chosen, windowing) if chosen else None,
            trouble=trouble,
            together=trouble.find_span(timedelta(days=MAX_DAYS)),
            holes=holes,
            losses=list_losses(holes, read_holes(ledger, context.name), windowing),
            history=read_history(ledger, context.name, parse_moment(before) if before else None),
        )


@router.get("/{pipeline}/range")
def show_range(
    user: User,
    pipeline: str,
    start: Annotated[str, Query(alias="from", max_length=40)],
    to: Annotated[str, Query(max_length=40)],
    force: bool = False,
    why: Text = None,
) -> HTMLResponse:
    """Show what a repair of the range would do, and the button that does exactly that."""
    with read_pipeline(pipeline) as context:
        windowing = context.windowing
        span = windowing.parse_range(start, to)
        plan = read_plan(context, start, to, force)
        taken = list_takings(context.ledger, context.name, span.start, span.end)
        states = Counter(read_strip(context.ledger, context.name, span.start, span.end)["states"].replace(".", ""))
        is_migrated = context.read_registration().contract_version > 1
    return render(
        "range.html",
        windowing=windowing,
        is_migrated=is_migrated,
        pipeline=pipeline,
        span=span,
        plan=plan,
        states=states,
        closed=states["c"],
        taken=taken,
        force=force,
        why=why or "",
        may=partial(may_start, user),
    )


@router.get("/{pipeline}/{window}")
def show_window(user: User, pipeline: str, window: str, why: Text = None) -> HTMLResponse:
    """Show all that is known of one window, and what its repair would change."""
    with read_pipeline(pipeline) as context:
        chosen = resolve_window(context, window)
        windowing, span = context.windowing, WindowRange(chosen.start, chosen.end)
        known = read_window(context, chosen)
        plan, not_planned = None, None
        try:
            plan = plan_windows(context, span, force=False)
        except OnceoverError as error:  # a window that has expired, or that no one can judge now, is shown all the same
            not_planned = str(error)
    return render(
        "window.html",
        windowing=windowing,
        pipeline=pipeline,
        window=chosen,
        known=known,
        span=span,
        plan=plan,
        closed=1 if known["state"] == "closed" else 0,
        force=False,
        not_planned=not_planned,
        why=why or "",
        may=partial(may_start, user),
        is_reread=any((step["command"] or "").startswith("onceover reread ") for step in known["next_steps"]),
    )
