from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from tests.support.server_app import ServerApp, server_app
from vramscope_protocol.errors import VramscopeError
from vramscope_server.app import create_app
from vramscope_server.settings import Settings


def test_a_database_that_cannot_be_opened_is_said_in_one_line() -> None:
    with pytest.raises(VramscopeError, match="/proc/none") as refused:
        create_app(Settings(database_url="sqlite:////proc/none/x.db"))
    assert "\n" not in refused.value.message


def test_two_servers_in_one_process_share_nothing(tmp_path: Path) -> None:
    with (
        server_app(tmp_path / "a") as one,
        server_app(tmp_path / "b", token="other") as two,
        one.agent(run="only-here") as agent,
    ):
        agent.samples(1)
        agent.wait_acked()
        assert [run["name"] for run in one.get("/api/v1/runs")] == ["only-here"]
        headers = {"authorization": "Bearer other"}
        assert two.client.get("/api/v1/runs", headers=headers).json() == []
        assert one.client.get("/api/v1/runs", headers=headers).status_code == 401


def test_the_stages_of_the_end_come_in_their_order_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[str] = []

    def note(owner: Any, name: str, stage: str) -> None:
        original = getattr(owner, name)

        def noted(*arguments: Any) -> Any:
            stages.append(stage)
            return original(*arguments)

        monkeypatch.setattr(owner, name, noted)

    with server_app(tmp_path) as server:
        context = server.context
        note(context.live, "shut_down", "browsers")
        note(context.coordinator, "stop", "commands")
        note(context.ingest, "stop", "agents")
        note(context.store, "close", "store")
        client = server.client
        portal = client.portal
        assert portal is not None
        portal.call(server.application.stop)
        assert client.get("/readyz").status_code == 503
    assert stages == ["browsers", "commands", "agents", "store"]


def test_new_peers_are_refused_while_it_ends(server: ServerApp) -> None:
    async def shut_down() -> None:
        await asyncio.wait_for(server.context.live.shut_down(), 30)

    portal = server.client.portal
    assert portal is not None
    portal.call(shut_down)
    with server.websocket("/ws/live", authorization="Bearer test-token") as session:
        assert session.receive()["code"] == 4503


def test_no_page_of_the_documentation_loads_anything_from_elsewhere(server: ServerApp) -> None:
    assert server.client.get("/docs").status_code == 404
    assert server.client.get("/redoc").status_code == 404
    schema = server.client.get("/openapi.json").json()
    assert "/api/v1/runs/{run}/commands" in schema["paths"]
    assert "/login" not in schema["paths"]


def test_the_wrong_method_and_the_unknown_path_have_the_one_shape(server: ServerApp) -> None:
    wrong = server.client.delete("/api/v1/runs")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "bad_request")
    assert server.get_error("/api/v1/nope", 404)["code"] == "not_found"


def test_an_unknown_websocket_is_refused(server: ServerApp) -> None:
    with pytest.raises(WebSocketDisconnect), server.websocket("/ws/nope"):
        pass
