from __future__ import annotations

import time

from tests.support.server_app import TOKEN, ServerApp
from vramscope_frontend import INDEX_HTML, STATIC_DIR

PAGES = ["/", "/runs", "/runs/0123456789ab", "/runs/train/ranks", "/audit"]

NOT_SERVED = [
    "/static/__init__.py",
    "/static/index.html",
    "/static/login.html",
    "/static/css/.hidden",
    "/static/..%2f..%2fpyproject.toml",
    "/static/css/none.css",
    "/static/",
    "/nope",
    "/docs",
    "/redoc",
]


def sign_in(server: ServerApp) -> None:
    assert server.client.get("/", params={"token": TOKEN}).status_code == 303


def test_every_address_of_the_app_is_the_one_document(server: ServerApp) -> None:
    sign_in(server)
    for path in PAGES:
        response = server.client.get(path)
        assert (path, response.status_code) == (path, 200)
        assert response.text == INDEX_HTML.read_text()
        assert response.headers["cache-control"] == "no-cache"
        assert "default-src 'self'" in response.headers["content-security-policy"]


def test_the_printed_address_signs_in_and_leaves_no_token_behind(server: ServerApp) -> None:
    response = server.client.get("/", params={"token": TOKEN})
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert response.headers["cache-control"] == "no-store"
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert server.client.get("/").status_code == 200


def test_the_printed_address_works_again_and_in_a_second_browser(server: ServerApp) -> None:
    for _ in range(2):
        server.client.cookies.clear()
        sign_in(server)
        assert server.client.get("/").status_code == 200


def test_a_deep_link_with_a_token_keeps_its_place(server: ServerApp) -> None:
    response = server.client.get(f"/runs/r1?x=1&token={TOKEN}&y=a%20b")
    assert response.headers["location"] == "/runs/r1?x=1&y=a+b"


def test_without_a_session_there_is_the_login_page(server: ServerApp) -> None:
    for path in PAGES:
        response = server.client.get(path)
        assert (path, response.status_code) == (path, 401)
        assert "Sign in" in response.text
        assert f'value="{path}"' in response.text


def test_what_is_wrong_with_the_token_of_the_address_is_said(server: ServerApp) -> None:
    wrong = server.client.get("/?token=wrong")
    assert wrong.status_code == 401
    assert "not known to this server" in wrong.text
    expired = server.make_token("view", name="old", expires_ns=time.time_ns() - 1)
    response = server.client.get("/", params={"token": expired})
    assert response.status_code == 401
    assert "has expired" in response.text
    assert expired not in response.text


def test_a_token_without_the_right_to_view_opens_no_page(server: ServerApp) -> None:
    server.client.get("/", params={"token": server.make_token("agent")})
    response = server.client.get("/")
    assert response.status_code == 403
    assert "&#x27;view&#x27;" in response.text


FRAMES = ["/frame/0123456789ab", "/frame/0123456789ab/ranks"]


def test_only_the_frame_may_be_framed_and_it_knows_nobody(server: ServerApp) -> None:
    sign_in(server)
    for path in [*PAGES, *FRAMES, "/static/css/tokens.css", "/api/v1/runs", "/login", "/nope"]:
        response = server.client.get(path)
        policy = response.headers["content-security-policy"]
        assert (path, "frame-ancestors 'none'" in policy) == (path, path not in FRAMES)
    for path in FRAMES:
        signed_in = server.client.get(path)
        server.client.cookies.clear()
        unknown = server.client.get(f"{path}?token={TOKEN}")
        assert signed_in.text == unknown.text == INDEX_HTML.read_text()
        assert "set-cookie" not in unknown.headers


def test_a_click_on_another_site_comes_in_by_a_detour(server: ServerApp) -> None:
    # The browser has the cookie and holds it back, because the click was on another site.
    response = server.client.get("/runs/r1", headers={"sec-fetch-site": "cross-site"})
    assert response.status_code == 200
    assert "http-equiv=refresh" in response.text
    assert (
        server.client.get("/runs/r1", headers={"sec-fetch-site": "same-origin"}).status_code == 401
    )


def test_static_files_are_asked_for_again(server: ServerApp) -> None:
    response = server.client.get("/static/css/tokens.css")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/css")
    assert response.headers["cache-control"] == "no-cache"
    etag = response.headers["etag"]
    again = server.client.get("/static/css/tokens.css", headers={"if-none-match": etag})
    assert again.status_code == 304


def test_modules_have_the_type_that_browsers_insist_on(server: ServerApp) -> None:
    script = next((STATIC_DIR / "js").glob("*.js"))
    response = server.client.get(f"/static/js/{script.name}")
    assert response.headers["content-type"].startswith("text/javascript")


def test_nothing_else_is_served(server: ServerApp) -> None:
    for path in NOT_SERVED:
        response = server.client.get(path)
        assert (path, response.status_code) == (path, 404)
        assert response.json()["error"]["code"] == "not_found"
