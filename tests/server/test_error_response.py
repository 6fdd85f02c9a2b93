from __future__ import annotations

import pytest
from fastapi import FastAPI, HTTPException, Query
from starlette.testclient import TestClient

from vramscope_protocol import errors
from vramscope_protocol.errors import VramscopeError
from vramscope_server.auth.throttle import RateLimited
from vramscope_server.error_response import STATUS, error_response, install_error_handlers


def client() -> TestClient:
    app = FastAPI()
    install_error_handlers(app)

    @app.get("/ours")
    async def ours(code: str) -> None:
        raise VramscopeError(code, "expected a, got b")

    @app.get("/slow")
    async def slow() -> None:
        raise RateLimited("wait", 2.1)

    @app.get("/bug")
    async def bug() -> None:
        raise RuntimeError("secret detail")

    @app.get("/number")
    async def number(n: int = Query(le=5)) -> int:
        return n

    @app.get("/teapot")
    async def teapot() -> None:
        raise HTTPException(418, "short and stout", {"x-pot": "tea"})

    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(("code", "status"), sorted(STATUS.items()))
def test_each_code_has_its_status(code: str, status: int) -> None:
    response = client().get("/ours", params={"code": code})
    assert response.status_code == status
    body = {"code": code, "message": "expected a, got b", "detail": {}}
    assert response.json() == {"error": body}


def test_a_bug_says_nothing_of_itself() -> None:
    response = client().get("/bug")
    assert response.status_code == 500
    assert response.json()["error"]["code"] == errors.INTERNAL
    assert "secret" not in response.text


def test_validation_says_expected_and_got() -> None:
    response = client().get("/number", params={"n": 7})
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["message"] == "n: expected less than or equal to 5, got '7'"
    assert error["detail"] == {"errors": [error["message"]]}


def test_a_long_value_is_cut() -> None:
    error = client().get("/number", params={"n": "x" * 500}).json()["error"]
    assert len(error["message"]) < 250


def test_what_the_framework_raises_has_the_same_shape() -> None:
    assert client().get("/none").json()["error"] == {
        "code": "not_found",
        "message": "GET /none: Not Found",
        "detail": {},
    }
    wrong_method = client().post("/number")
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "GET")
    teapot = client().get("/teapot")
    assert (teapot.status_code, teapot.headers["x-pot"]) == (418, "tea")
    assert teapot.json()["error"]["code"] == "bad_request"


def test_headers_that_tell_the_caller_what_to_do() -> None:
    assert client().get("/slow").headers["retry-after"] == "3"
    unknown = error_response(VramscopeError(errors.AUTH_FAILED, "who?"))
    assert unknown.headers["www-authenticate"] == "Bearer"
