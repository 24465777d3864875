"""What the pages show, as JSON below /api, from the same functions. docs/page.md has the list."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse

from onceover.explain.page.history import list_holes, read_history
from onceover.explain.page.numbers import read_numbers
from onceover.explain.page.pipelines import list_pipelines
from onceover.explain.page.run import read_request, read_run
from onceover.explain.page.strip import read_strip
from onceover.explain.page.trouble import list_trouble
from onceover.explain.page.window import read_window
from onceover.ledger.windows import WindowState
from onceover.model.json_text import to_plain
from onceover.model.window import parse_moment
from onceover_airflow.page.gate import RECORDS_READER
from onceover_airflow.page.plan import read_plan
from onceover_airflow.page.reading import read_ledger, read_pipeline

router = APIRouter(prefix="/api")
Moment = Annotated[str, Query(min_length=1, max_length=40)]
MomentIfAny = Annotated[str | None, Query(max_length=40)]


@router.get("/pipelines")
def answer_pipelines() -> JSONResponse:
    with read_ledger() as ledger:
        return _answer(list_pipelines(ledger))


@router.get("/p/{pipeline}/strip")
def answer_strip(pipeline: str, start: Annotated[str, Query(alias="from")], to: Moment) -> JSONResponse:
    """The state of every window in [from, to), a letter each."""
    with read_pipeline(pipeline) as context:
        return _answer(read_strip(context.ledger, context.name, parse_moment(start), parse_moment(to)))


@router.get("/p/{pipeline}/trouble")
def answer_trouble(
    pipeline: str,
    state: WindowState | None = None,
    after: MomentIfAny = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JSONResponse:
    """Unbroken ranges of windows that are wrong for the same reason."""
    with read_pipeline(pipeline) as context:
        after_moment = parse_moment(after) if after else None
        return _answer(list_trouble(context.ledger, context.name, state, after_moment, limit))


@router.get("/p/{pipeline}/w/{window}")
def answer_window(pipeline: str, window: str) -> JSONResponse:
    """One window, as `onceover explain --json` has it."""
    with read_pipeline(pipeline) as context:
        chosen = context.windowing.parse_window(window)
        return _answer(read_window(context, chosen))


@router.get("/p/{pipeline}/w/{window}/numbers", dependencies=[Depends(RECORDS_READER)])
def answer_numbers(pipeline: str, window: str, repair: int | None = None) -> JSONResponse:
    """The window's measures by key before and after a repair."""
    with read_pipeline(pipeline) as context:
        chosen = context.windowing.parse_window(window)
        return _answer(read_numbers(context.ledger, context.name, chosen.start, repair))


@router.get("/p/{pipeline}/plan")
def answer_plan(
    pipeline: str, start: Annotated[str, Query(alias="from")], to: Moment, force: bool = False
) -> JSONResponse:
    """What a repair of [from, to) would do now, and the token by which it does exactly that."""
    with read_pipeline(pipeline) as context:
        return _answer(read_plan(context, start, to, force))


@router.get("/p/{pipeline}/holes")
def answer_holes(pipeline: str) -> JSONResponse:
    with read_pipeline(pipeline) as context:
        return _answer(list_holes(context.ledger, context.name))


@router.get("/p/{pipeline}/history")
def answer_history(pipeline: str, before: MomentIfAny = None) -> JSONResponse:
    """Who did what and why, newest first."""
    with read_pipeline(pipeline) as context:
        before_moment = parse_moment(before) if before else None
        return _answer(read_history(context.ledger, context.name, before_moment))


@router.get("/requests/{request_id}")
def answer_request(request_id: int) -> JSONResponse:
    with read_ledger() as ledger:
        return _answer(read_request(ledger, request_id))


@router.get("/runs/{dag_id}/{run_id:path}")
def answer_run(dag_id: str, run_id: str) -> JSONResponse:
    """The repair requests of a run of Airflow, with what the ledger says of each window."""
    with read_ledger() as ledger:
        return _answer(read_run(ledger, dag_id, run_id))


def _answer(value: object) -> JSONResponse:
    return JSONResponse(to_plain(value))
