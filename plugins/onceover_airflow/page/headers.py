"""The headers of every answer: no foreign script, frame or type, and nothing kept by the browser."""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response
from starlette.middleware.base import RequestResponseEndpoint

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; frame-ancestors 'self'; object-src 'none'; base-uri 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}


async def add_headers(request: Request, answer: RequestResponseEndpoint) -> Response:
    """Answer as the routes and error handlers below this middleware do, with the headers."""
    response = await answer(request)
    response.headers.update(HEADERS)
    return response
