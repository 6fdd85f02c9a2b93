from __future__ import annotations

import pytest

from vramscope_protocol.errors import AUTH_FAILED, VramscopeError
from vramscope_server.auth.throttle import RateLimited
from vramscope_server.pages.login import bounce_page, local_path, login_page


def test_the_page_asks_for_a_token_and_remembers_where_to_go() -> None:
    response = login_page(None, "/runs/r1?tab=ranks&x=1")
    page = bytes(response.body).decode()
    assert response.status_code == 401
    assert 'value="/runs/r1?tab=ranks&amp;x=1"' in page
    assert 'role="alert"></p>' in page
    assert "{{" not in page
    assert "<script" not in page


def test_what_was_wrong_is_said_and_cannot_carry_markup() -> None:
    page = bytes(login_page(VramscopeError(AUTH_FAILED, "no <b>such</b> token"), "/").body)
    assert b"No &lt;b&gt;such&lt;/b&gt; token." in page


def test_who_tries_too_often_is_told_how_long_to_wait() -> None:
    response = login_page(RateLimited("slow down", 5.2), "/")
    assert (response.status_code, response.headers["retry-after"]) == (429, "6")


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/", "/"),
        ("/runs/a?b=c", "/runs/a?b=c"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\\..\\b", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nset-cookie: x", "/"),
        ("", "/"),
    ],
)
def test_no_redirect_leaves_the_server(path: str, local: str) -> None:
    assert local_path(path) == local


def test_the_bounce_page_loads_itself_again() -> None:
    response = bounce_page()
    assert response.status_code == 200
    assert b"http-equiv=refresh" in bytes(response.body)
    assert response.headers["cache-control"] == "no-store"
