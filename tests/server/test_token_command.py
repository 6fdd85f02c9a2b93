from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.server_app import server_app
from vramscope_protocol.errors import VramscopeError
from vramscope_server.__main__ import main
from vramscope_server.token_command import parse_duration_s, parse_scopes


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs ``token ...`` on the test's database; what it printed."""

    def run(action: str, *arguments: str) -> str:
        database = f"sqlite:///{tmp_path / 'vramscope.db'}"
        main(["token", action, *arguments, "--database", database])
        return capsys.readouterr().out.strip()

    return run


def works(folder: Path, secret: str) -> int:
    with server_app(folder) as server:
        headers = {"authorization": f"Bearer {secret}"}
        return server.client.get("/api/v1/runs", headers=headers).status_code


def test_a_token_is_printed_once_and_works_until_it_is_revoked(
    command: Any, tmp_path: Path
) -> None:
    secret = command("create", "--scope", "view", "--name", "ci")
    assert works(tmp_path, secret) == 200
    listed = command("list")
    assert "ci" in listed
    assert secret not in listed
    (token,) = json.loads(command("list", "--json"))["tokens"]
    assert (token["name"], token["scopes"], token["state"]) == ("ci", ["view"], "valid")
    assert command("revoke", str(token["id"])) == f"revoked {token['id']}"
    assert works(tmp_path, secret) == 401
    assert json.loads(command("list", "--json"))["tokens"][0]["state"] == "revoked"


def test_a_token_that_expires(command: Any) -> None:
    made = json.loads(command("create", "--scope", "view,control", "--expires", "90d", "--json"))
    assert made["scopes"] == ["control", "view"]
    assert made["name"] == "control,view"
    assert abs(made["expires_ns"] - time.time_ns() - 90 * 86400 * 10**9) < 60 * 10**9
    assert len(made["token"]) >= 32
    command("create", "--scope", "agent", "--expires", "0s")
    states = [token["state"] for token in json.loads(command("list", "--json"))["tokens"]]
    assert states == ["valid", "expired"]
    assert "never" not in command("list")


def test_sessions_end_with_their_token(command: Any, tmp_path: Path) -> None:
    secret = command("create", "--scope", "view")
    with server_app(tmp_path) as server:
        cookies = server.client.post("/login", json={"token": secret}).cookies
        assert server.client.get("/api/v1/runs").status_code == 200
    assert len(json.loads(command("list", "--json"))["tokens"]) == 1
    command("revoke", "1")
    with server_app(tmp_path) as server:
        cookie = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        assert server.client.get("/api/v1/runs", headers=cookie).status_code == 401


@pytest.mark.parametrize("text", ["", "view,root", ",", "VIEW"])
def test_unknown_scopes(text: str) -> None:
    with pytest.raises(VramscopeError, match="--scope: expected some of agent, control, view"):
        parse_scopes(text)


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "1w", "1.5h", "9999999999d"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(VramscopeError, match="--expires: expected a duration such as"):
        parse_duration_s(text)


def test_durations() -> None:
    assert [parse_duration_s(text) for text in ("30s", "5m", "2h", "1d")] == [30, 300, 7200, 86400]


def test_an_unknown_id(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command("revoke", "77")
    assert ended.value.code == 2
    assert "no token with the id '77'" in capsys.readouterr().err
