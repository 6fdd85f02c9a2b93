from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection

from tests.support.server_app import ServerApp
from vramscope_server.context import context_of


def test_a_request_reaches_the_parts_of_its_own_server(server: ServerApp) -> None:
    app = Starlette()
    app.state.context = server.context
    assert context_of(HTTPConnection({"type": "http", "app": app})) is server.context


def test_another_application_has_no_context() -> None:
    app = Starlette()
    app.state.context = "something else"
    with pytest.raises(AssertionError):
        context_of(HTTPConnection({"type": "http", "app": app}))
