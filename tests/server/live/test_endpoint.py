from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from tests.support.scripted_agent import ALLOCATED, RESERVED
from tests.support.server_app import TOKEN, LivePage, ServerApp, server_app
from vramscope_protocol.errors import CLOSE_CODES
from vramscope_server.settings import Limits
from vramscope_server.store import tokens

RUN = "0123456789ab"
NO_REQUESTS = [
    ("x" * 20_000, "too_large"),
    ("{", "bad_message"),
    ('{"type": "ping"}', "bad_message"),
    ('{"type": "format_disk", "id": 1}', "bad_message"),
]


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[ServerApp]:
    """A server that looks at rights all the time and lets in two pages."""
    with server_app(tmp_path, Limits(auth_cache_s=0.02, live_connections=2)) as started:
        yield started


def closed(page: LivePage) -> WebSocketDisconnect:
    """How the server ended the connection."""
    try:
        while True:
            page.receive()
    except WebSocketDisconnect as ended:
        return ended


def close_of(server: ServerApp, **headers: str) -> WebSocketDisconnect:
    """How a connection that is let in by nobody ends."""
    with (
        pytest.raises(WebSocketDisconnect) as ended,
        server.websocket("/ws/live", **headers) as session,
    ):
        session.receive_text()
    return ended.value


def test_the_server_says_hello(server: ServerApp) -> None:
    with server.live() as page:
        assert page.hello["type"] == "hello"
        assert page.hello["scopes"] == ["agent", "control", "view"]
        assert abs(page.hello["server_time_ns"] - time.time_ns()) < 60e9


def test_a_page_follows_a_run(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.samples(1)
        agent.wait_acked()
        with server.live() as page:
            subscription = page.ask("subscribe_run", run="train", fields=[ALLOCATED])
            assert page.receive() == {"type": "result", "id": subscription, "ok": True}
            first = page.receive()
            assert (first["id"], first["event"]["kind"]) == (subscription, "run")
            assert first["event"]["run"]["ranks"][0]["state"] == "live"

            agent.samples(2, step=5, **{ALLOCATED: [7, 8]})
            samples = page.wait_event("samples")
            assert samples["columns"] == {"step": [5, 5], ALLOCATED: [7, 8]}
            assert (samples["rank"], len(samples["time_ns"])) == (0, 2)

            agent.steps(1, step=6, **{RESERVED: [9]})
            steps = page.wait_event("steps")
            assert (steps["step"], set(steps["columns"])) == ([6], {ALLOCATED})

            agent.event("mark", "here")
            assert page.wait_event("event")["event"]["text"] == "here"
            agent.status(rate_hz=5.0)
            assert page.wait_event("status")["status"]["rate_hz"] == 5.0
            agent.goodbye()
            ended = page.wait_event("run", lambda e: e["run"]["state"] == "ended")
            assert ended["run"]["ranks"][0]["end_reason"] == "exit"


def test_the_list_of_runs_changes_by_itself(server: ServerApp) -> None:
    with server.live() as page:
        page.ask("subscribe_runs")
        assert page.wait_event("runs")["runs"] == []
        with server.agent():
            runs = page.wait_event("runs", lambda e: e["runs"])["runs"]
            assert (runs[0]["name"], runs[0]["state"]) == ("train", "live")


def test_two_pages_see_the_same_command(server: ServerApp) -> None:
    with server.agent() as agent, server.live() as one, server.live() as two:
        for page in (one, two):
            page.ask("subscribe_run", run=RUN, fields=[])
            page.wait_event("run")
        posted = server.post(f"/api/v1/runs/{RUN}/commands", {"name": "gc_collect"}).json()
        agent.update(agent.wait_command(), "done", step=3)
        for page in (one, two):
            event = page.wait_event("command", lambda e: e["command"]["state"] == "done")
            assert event["command"]["id"] == posted["id"]
            assert event["command"]["receipts"]["0"]["step"] == 3
            mark = page.wait_event("event", lambda e: e["event"]["kind"] == "command")
            assert mark["event"]["data"]["command_id"] == posted["id"]


def test_what_is_no_request_ends_that_connection_alone(server: ServerApp) -> None:
    with server.live() as other:
        for frame, code in NO_REQUESTS:
            with server.live() as page:
                page.session.send_text(frame)
                assert closed(page).code == CLOSE_CODES[code]
            assert other.ask("ping") == other.receive()["id"]


def test_a_binary_frame_with_a_request_is_taken(server: ServerApp) -> None:
    with server.live() as page:
        page.session.send_bytes(json.dumps({"type": "ping", "id": 9}).encode())
        assert page.receive() == {"type": "result", "id": 9, "ok": True}


def test_who_is_not_let_in_is_told_why_by_the_close_code(server: ServerApp) -> None:
    expired = server.make_token("view", expires_ns=1)
    agents = server.make_token("agent")
    codes = [
        close_of(server).code,
        close_of(server, authorization="Bearer wrong").code,
        close_of(server, cookie="vramscope_session=wrong").code,
        close_of(server, authorization=f"Bearer {expired}").code,
        close_of(server, authorization=f"Bearer {agents}").code,
    ]
    assert codes == [4401, 4401, 4401, 4402, 4403]


def test_a_page_of_another_origin_reaches_neither_socket(server: ServerApp) -> None:
    server.client.post("/login", json={"token": TOKEN})
    for path in ("/ws/live", "/ws/agent"):
        for origin in ("http://evil.example", "http://127.0.0.1:9", "null"):
            with (
                pytest.raises(WebSocketDenialResponse) as refused,
                server.websocket(path, origin=origin),
            ):
                pass
            assert refused.value.status_code == 403
            assert refused.value.json()["error"]["code"] == "origin_refused"


def test_a_signed_in_page_needs_no_token(server: ServerApp) -> None:
    server.client.post("/login", json={"token": TOKEN})
    with server.websocket("/ws/live", origin="http://127.0.0.1:8470") as session:
        assert json.loads(session.receive_text())["type"] == "hello"


def test_a_revoked_token_ends_the_connection(impatient: ServerApp) -> None:
    secret = impatient.make_token("view")
    store = impatient.context.store
    with impatient.live(secret) as page:
        (record,) = store.read_now(tokens.list_tokens)
        store.write_now(lambda c: tokens.revoke_token(c, record.id, 1))
        ended = closed(page)
    assert (ended.code, ended.reason) == (4401, "the token 'made' has been revoked")


def test_a_token_that_expires_ends_the_connection(impatient: ServerApp) -> None:
    secret = impatient.make_token("view", expires_ns=time.time_ns() + 300_000_000)
    with impatient.live(secret) as page:
        assert closed(page).code == 4402


def test_too_many_pages(impatient: ServerApp) -> None:
    with impatient.live(), impatient.live():
        assert close_of(impatient, authorization=f"Bearer {TOKEN}").code == 4431
        assert impatient.context.live.connection_count == 2
    impatient.wait_until(lambda: impatient.context.live.connection_count == 0)
    with impatient.live() as page:
        page.ask("ping")
        assert page.receive()["ok"]


def test_a_page_in_a_frame_is_let_in_by_the_token_that_it_offers(server: ServerApp) -> None:
    with server.agent(run="train", run_id=RUN):
        made = server.post(f"/api/v1/runs/{RUN}/frames", {"scopes": ["view"]}).json()
        offer = f"vramscope, vramscope.token.{made['token']}"
        # The cookie of who looks at it has more rights: it does not count.
        session = server.client.post("/login", json={"token": TOKEN}).cookies
        cookie = "; ".join(f"{name}={value}" for name, value in session.items())
        headers = {"sec-websocket-protocol": offer, "cookie": cookie}
        with LivePage(server.websocket("/ws/live", **headers)) as page:
            assert str(page.session.accepted_subprotocol) == "vramscope"
            assert page.hello["scopes"] == ["view"]
            page.ask("subscribe_run", run=RUN, fields=[], ranks=None)
            assert page.wait_event("run")["run"]["id"] == RUN


def test_an_offered_token_that_is_wrong_is_no_better_than_none(server: ServerApp) -> None:
    session = server.client.post("/login", json={"token": TOKEN}).cookies
    cookie = "; ".join(f"{name}={value}" for name, value in session.items())
    offer = "vramscope, vramscope.token.wrong"
    ended = close_of(server, **{"sec-websocket-protocol": offer, "cookie": cookie})
    assert ended.code == CLOSE_CODES["auth_failed"]
