"""The page as an ASGI application, which Airflow's api-server mounts. It reads only: no route but GET.

What a person does on it is the browser's own call of Airflow's REST API, so that Airflow's permissions, audit log and
history hold.
"""

from __future__ import annotations

from fastapi import FastAPI

from onceover_airflow.page.api import router as api
from onceover_airflow.page.assets import add_assets
from onceover_airflow.page.gate import READER
from onceover_airflow.page.headers import add_headers
from onceover_airflow.page.refusals import add_refusals
from onceover_airflow.page.views import router as views


def build_app() -> FastAPI:
    """Return the application, every route of which is behind `READER`. Its own documentation is off: FastAPI serves it
    without a session."""
    app = FastAPI(title="Onceover", dependencies=list(READER), docs_url=None, redoc_url=None, openapi_url=None)
    add_assets(app)
    app.include_router(api)
    app.include_router(views)
    add_refusals(app)
    app.middleware("http")(add_headers)
    return app
