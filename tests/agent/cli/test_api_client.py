from __future__ import annotations

import argparse
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_api import FakeApi
from tests.support.fake_server import free_port, silent_listener
from vramscope.cli import api_client
from vramscope.cli.api_client import ApiClient, add_server_options
from vramscope.cli.problem import Problem
from vramscope.transport.address import parse_address

RUNS = "GET /api/v1/runs"


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No local server is running, and nothing is set."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name in ("VRAMSCOPE_URL", "VRAMSCOPE_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def client_of(*words: str) -> ApiClient:
    parser = argparse.ArgumentParser()
    add_server_options(parser)
    return ApiClient.from_options(parser.parse_args(words))


def at(url: str, token: str = "t") -> ApiClient:
    return ApiClient(parse_address(url), token)


def run_locally(tmp_path: Path, url: str) -> None:
    folder = tmp_path / "vramscope"
    folder.mkdir(mode=0o700)
    content = {"url": url, "token": "the local token", "pid": os.getpid()}
    (folder / "server.json").write_text(json.dumps(content))
    (folder / "server.json").chmod(0o600)


def token_sent(fake: FakeApi, client: ApiClient) -> str:
    """The token with which a client comes to this server."""
    client.get("runs")
    return fake.requests[-1][2].get("Authorization", "")


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    with FakeApi({RUNS: [(200, [])]}) as fake:
        yield fake


def test_without_options_the_local_server_is_asked(fake: FakeApi, tmp_path: Path) -> None:
    run_locally(tmp_path, fake.url)
    assert token_sent(fake, client_of()) == "Bearer the local token"
    assert token_sent(fake, client_of("--token", "mine")) == "Bearer mine"


def test_the_local_server_by_its_address_needs_no_token(fake: FakeApi, tmp_path: Path) -> None:
    run_locally(tmp_path, fake.url)
    assert token_sent(fake, client_of("--url", fake.url)) == "Bearer the local token"
    assert token_sent(fake, client_of("--url", fake.url, "--token", "mine")) == "Bearer mine"


def test_another_server_does_not_get_the_token_of_the_local_one(
    fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_locally(tmp_path, f"http://127.0.0.1:{free_port()}")
    assert "local" not in token_sent(fake, client_of("--url", fake.url))
    monkeypatch.setenv("VRAMSCOPE_URL", fake.url)
    monkeypatch.setenv("VRAMSCOPE_TOKEN", "of the environment")
    assert token_sent(fake, client_of()) == "Bearer of the environment"


def test_without_any_server_it_says_what_to_do() -> None:
    with pytest.raises(Problem, match=r"no local server.*vramscope serve, or --url") as problem:
        client_of()
    assert problem.value.exit_code == 2
    with pytest.raises(Problem, match="expected a server URL"):
        client_of("--url", "nonsense")


def test_a_name_of_a_run_cannot_lead_to_another_path() -> None:
    with FakeApi({"GET /api/v1/runs/..%2Fa%20b%3Fc%23d": [(200, {"id": 1})]}) as fake:
        assert at(fake.url).get("runs", "../a b?c#d") == {"id": 1}


def test_a_post_sends_json_and_says_who_asks() -> None:
    with FakeApi({"POST /api/v1/runs/r/commands": [(202, {"id": "c1"})]}) as fake:
        answer = at(fake.url).post("runs", "r", "commands", body={"name": "stats", "n": None})
        assert answer == {"id": "c1"}
        _, body, headers = fake.requests[0]
    assert body == {"name": "stats", "n": None}
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Vramscope-Origin"] == "cli"


def test_no_proxy_is_asked_for_a_local_address(
    fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    assert at(fake.url).get("runs") == []


@contextmanager
def redirecting_to(url: str) -> Iterator[str]:
    """Address of a server that sends everybody elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", url + self.path)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(0.01))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(5)


def test_the_token_stays_with_the_server_that_it_is_for(fake: FakeApi) -> None:
    with redirecting_to(fake.url) as url:
        assert "secret" not in token_sent(fake, at(url, "secret"))


@pytest.mark.parametrize(
    ("status", "code", "advice", "exit_code"),
    [
        (401, "auth_failed", "; give the server's token as --token or VRAMSCOPE_TOKEN", 2),
        (401, "token_expired", "; make a new one with: vramscope token", 2),
        (404, "not_found", "", 2),
        (422, "bad_request", "", 2),
        (403, "forbidden", "", 1),
        (409, "conflict", "", 1),
        (500, "internal", "", 1),
    ],
)
def test_a_refusal_is_the_servers_words_and_what_to_do(
    status: int, code: str, advice: str, exit_code: int
) -> None:
    error = {"error": {"code": code, "message": "this and that"}}
    with FakeApi({RUNS: [(status, error)]}) as fake, pytest.raises(Problem) as problem:
        at(fake.url, "secret").get("runs")
    assert str(problem.value) == f"this and that{advice}"
    assert problem.value.exit_code == exit_code


@pytest.mark.parametrize(
    "answer",
    [(200, "<html>"), (404, "nothing here"), (404, "[]"), (500, {"error": "x"}), (400, {})],
    ids=str,
)
def test_what_is_no_vramscope_server_is_said_so(answer: tuple[int, Any]) -> None:
    with FakeApi({RUNS: [answer]}) as fake, pytest.raises(Problem) as problem:
        at(fake.url).get("runs")
    assert str(problem.value) == f"what answers at {fake.url} is not a vramscope server"


def test_where_nobody_listens_the_reason_is_said() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Problem) as problem:
        at(url).get("runs")
    assert str(problem.value).startswith(f"no server answers at {url} (")
    assert "refused" in str(problem.value)


def test_a_server_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_client, "_TIMEOUT_S", 0.1)
    with silent_listener() as url, pytest.raises(Problem, match=r"no server answers.*timed out"):
        at(url).get("runs")


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\nContent-"])
def test_what_does_not_speak_http_is_a_problem_and_no_traceback(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Problem, match=r"no server answers|not a vramscope server"):
            at(f"http://127.0.0.1:{listener.getsockname()[1]}").get("runs")
        thread.join(5)
