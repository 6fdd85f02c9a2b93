from __future__ import annotations

import dataclasses

import pytest

from tests.support.server_app import ServerApp


def test_both_say_yes_without_a_token(server: ServerApp) -> None:
    assert server.client.get("/healthz").json()["ok"]
    response = server.client.get("/readyz")
    assert (response.status_code, response.json()["ok"]) == (200, True)
    with server.agent():
        assert server.client.get("/readyz").json()["agents"] == 1


def test_not_ready_while_the_store_does_not_commit(
    server: ServerApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = server.context.store
    broken = dataclasses.replace(store.health(), ok=False, error="disk full at /secret/path")
    monkeypatch.setattr(store, "health", lambda: broken)
    response = server.client.get("/readyz")
    assert (response.status_code, response.json()["ok"]) == (503, False)
    assert "secret" not in response.text
    assert server.client.get("/healthz").json()["ok"]


def test_not_ready_while_shutting_down(server: ServerApp) -> None:
    server.context.ready = False
    assert server.client.get("/readyz").json()["shutting_down"]
