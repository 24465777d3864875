"""The page's own scripts, styles and icons. Each has a route of its own, behind the same gate as the pages."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Final

from fastapi import FastAPI
from fastapi.responses import Response

_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def add_assets(app: FastAPI) -> None:
    """Add a route for each file of `static/`."""
    for file in sorted(files("onceover_airflow.page").joinpath("static").iterdir(), key=lambda each: each.name):
        media_type = _TYPES["." + file.name.rpartition(".")[2]]
        app.add_api_route(f"/static/{file.name}", _make_answer(file.read_bytes(), media_type), methods=["GET"])


def _make_answer(content: bytes, media_type: str) -> Callable[[], Response]:
    def answer() -> Response:
        return Response(content, media_type=media_type)

    return answer
