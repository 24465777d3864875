"""What a refused or failed request answers: JSON below /api, a page elsewhere; without a session, the way to the login.

The words are the error's own: they say what happened, where, and what to do.
"""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from onceover.errors import OnceoverError, TransientError, UnknownWindowError, UsageError
from onceover_airflow.page.addresses import find_root, locate_login
from onceover_airflow.page.headers import HEADERS
from onceover_airflow.page.render import render

_TITLES = {
    403: "You may not see this",
    404: "There is no such page",
    405: "This page only reads",
    422: "This address is incomplete",
    503: "A part does not answer",
}


def add_refusals(app: FastAPI) -> None:
    app.add_exception_handler(HTTPException, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_address)
    app.add_exception_handler(OnceoverError, _explain_failure)
    app.add_exception_handler(Exception, _report_defect)


def _refuse(request: Request, error: Exception) -> Response:
    refusal = error if isinstance(error, HTTPException) else HTTPException(500)
    status, detail = refusal.status_code, str(refusal.detail)
    if status == 401 and not _wants_json(request) and request.method == "GET":
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(locate_login(find_root() + _read_path(request) + query), 303)
    if status == 403:
        detail = (
            "Airflow does not let this user see the runs of the DAG repair_on_call, which is the right that this page "
            f"asks for ({detail}). Ask Airflow's administrator for it, or log in as another user."
        )
    return _answer(request, status, detail)


def _refuse_address(request: Request, error: Exception) -> Response:
    details = error.errors() if isinstance(error, RequestValidationError) else ()
    wrong = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in details)
    return _answer(request, 422, wrong or "a value in the address is wrong")


def _explain_failure(request: Request, error: Exception) -> Response:
    status = (
        404 if isinstance(error, UsageError | UnknownWindowError) else 503 if isinstance(error, TransientError) else 500
    )
    return _answer(request, status, str(error))


def _report_defect(request: Request, error: Exception) -> Response:
    """Answer for a defect of the page; Starlette logs it with its traceback. The server's outermost layer answers this,
    above the middleware that adds headers."""
    detail = f"the page has a defect ({type(error).__name__}); the api-server's log has its traceback"
    answer = _answer(request, 500, detail)
    answer.headers.update(HEADERS)
    return answer


def _answer(request: Request, status: int, detail: str) -> Response:
    if _wants_json(request):
        return JSONResponse({"detail": detail}, status)
    return render("refusal.html", status, title=_TITLES.get(status, "This failed"), detail=detail)


def _wants_json(request: Request) -> bool:
    return _read_path(request).startswith(("/api/", "/static/"))


def _read_path(request: Request) -> str:
    """Return the path below the page's root, however Airflow is mounted."""
    path: str = request.scope["path"]
    return path.removeprefix(request.scope.get("root_path", ""))
