from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from vramscope_server.pages.security_headers import (
    CONTENT_SECURITY_POLICY,
    FRAME_HEADERS,
    SecurityHeaders,
)


def client() -> TestClient:
    async def plain(_request: Request) -> Response:
        return PlainTextResponse("x")

    async def cached(_request: Request) -> Response:
        return PlainTextResponse("x", headers={"cache-control": "no-cache"})

    app = Starlette(routes=[Route("/plain", plain), Route("/cached", cached)])
    return TestClient(SecurityHeaders(app))


def test_every_response_carries_them() -> None:
    for path in ("/plain", "/absent"):
        headers = client().get(path).headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


def test_a_response_that_may_be_cached_says_so_itself() -> None:
    assert client().get("/cached").headers["cache-control"] == "no-cache"


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    directives = dict(
        part.strip().partition(" ")[::2] for part in CONTENT_SECURITY_POLICY.split(";")
    )
    assert directives["default-src"] == "'self'"
    assert "script-src" not in directives
    assert "unsafe-inline" not in directives["style-src"]
    assert directives["frame-ancestors"] == "'none'"
    sources = " ".join(directives.values())
    assert "http" not in sources
    assert "*" not in sources
    assert "unsafe-eval" not in sources


def test_a_frame_may_stand_anywhere_and_loads_no_more_than_the_page() -> None:
    policy = FRAME_HEADERS["content-security-policy"]
    assert f"{policy}; frame-ancestors 'none'" == CONTENT_SECURITY_POLICY


def test_forms_keep_their_origin() -> None:
    # With "no-referrer" browsers send "Origin: null", and signing in by the form would fail.
    assert client().get("/plain").headers["referrer-policy"] == "same-origin"
