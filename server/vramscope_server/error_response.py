"""One shape for every error that leaves the server over HTTP: ``{"error": {...}}``."""

from __future__ import annotations

import logging
import math
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from vramscope_protocol import errors
from vramscope_protocol.errors import VramscopeError
from vramscope_server.auth.throttle import RateLimited

_logger = logging.getLogger("vramscope.server")

STATUS: Final[dict[str, int]] = {
    errors.BAD_MESSAGE: 400,
    errors.BAD_REQUEST: 400,
    errors.AUTH_FAILED: 401,
    errors.TOKEN_EXPIRED: 401,
    errors.FORBIDDEN: 403,
    errors.ORIGIN_REFUSED: 403,
    errors.NOT_FOUND: 404,
    errors.CONFLICT: 409,
    errors.TOO_LARGE: 413,
    errors.RATE_LIMITED: 429,
    errors.INTERNAL: 500,
    errors.SHUTTING_DOWN: 503,
}
"""HTTP status of each error code."""

_CODE_OF_STATUS: Final[dict[int, str]] = {
    401: errors.AUTH_FAILED,
    403: errors.FORBIDDEN,
    404: errors.NOT_FOUND,
    413: errors.TOO_LARGE,
    429: errors.RATE_LIMITED,
}


def error_body(code: str, message: str, detail: dict[str, Any] | None = None) -> bytes:
    """The JSON body of an error."""
    body = {"code": code, "message": message, "detail": detail or {}}
    return msgspec.json.encode({"error": body})


def error_response(error: VramscopeError) -> Response:
    """An error of ours as a response."""
    response = Response(
        error_body(error.code, error.message),
        STATUS.get(error.code, 500),
        media_type="application/json",
    )
    if isinstance(error, RateLimited):
        response.headers["retry-after"] = str(math.ceil(error.wait_s))
    if response.status_code == STATUS[errors.AUTH_FAILED]:
        response.headers["www-authenticate"] = "Bearer"
    return response


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of the application the one shape."""
    app.add_exception_handler(VramscopeError, _on_vramscope_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_unexpected_error)


async def _on_vramscope_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, VramscopeError)
    if STATUS.get(error.code, 500) >= STATUS[errors.INTERNAL]:
        _logger.error("%s: %s", error.code, error.message)
    return error_response(error)


async def _on_validation_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [_explain(problem) for problem in error.errors()]
    body = error_body(errors.BAD_REQUEST, "; ".join(problems), {"errors": problems})
    return Response(body, 422, media_type="application/json")


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}"
    code = _CODE_OF_STATUS.get(error.status_code, errors.BAD_REQUEST)
    return Response(
        error_body(code, message),
        error.status_code,
        headers=dict(error.headers or {}),
        media_type="application/json",
    )


async def _on_unexpected_error(_request: Request, _error: Exception) -> Response:
    # The traceback is logged by the server below us; it may hold what the caller must not see.
    body = error_body(errors.INTERNAL, "the server failed on this request; see its log")
    return Response(body, 500, media_type="application/json")


def _explain(problem: dict[str, Any]) -> str:
    """``points: expected ..., got ...`` out of one problem that pydantic found."""
    place = ".".join(str(part) for part in problem["loc"][1:]) or str(problem["loc"][0])
    message = str(problem["msg"]).replace("Input should be ", "expected ", 1)
    if problem["type"] == "missing":
        return f"{place}: expected a value, got none"
    if problem["type"] == "json_invalid":
        return f"body: expected JSON, got something else ({problem['ctx']['error']})"
    if problem["type"] == "model_attributes_type":
        got = _short(problem.get("input"))
        return f"{place}: expected JSON sent as Content-Type: application/json, got {got}"
    if not message.startswith("expected"):
        message = f"expected another value ({message})"
    return f"{place}: {message}, got {_short(problem.get('input'))}"


def _short(value: object, max_chars: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"
