"""The job goes on as if it were alone, whatever the server does."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

from tests.support.fake_api import FakeApi
from tests.support.fake_server import Behaviour, FakeServer, free_port, silent_listener
from tests.support.same_job import run_both, write_script
from vramscope_protocol.messages import Register

EXTRA_S = 2.0
"""Start of the agent, and an end that waits for delivery, together."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_script(tmp_path_factory.mktemp("job"))


def test_a_good_server_gets_everything(script: Path) -> None:
    with FakeServer() as server:
        outcome = run_both(script, server.url, server.token)
        assert [row["step"] for row in server.rows("step")] == list(range(1, 11))
        assert server.seqs() == list(range(1, len(server.seqs()) + 1))
        assert server.goodbye is not None
        assert server.goodbye.exit_code == 3
    assert outcome.notices == [f"vramscope: dashboard: {server.url}"]
    assert outcome.extra_s < EXTRA_S


def test_no_server(script: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    outcome = run_both(script, url)
    assert outcome.notices == [
        f"vramscope: no server answers at {url} (Connection refused); "
        "the job goes on, trying again",
        "vramscope: not everything could be delivered before the end: "
        "no server acknowledged it in time",
    ]
    assert outcome.extra_s < EXTRA_S


def test_a_name_that_does_not_resolve(script: Path) -> None:
    outcome = run_both(script, "http://no-such-host.invalid:8470")
    assert "no server answers at http://no-such-host.invalid:8470" in outcome.notices[0]
    assert outcome.extra_s < EXTRA_S


def test_a_server_that_accepts_and_is_silent(script: Path) -> None:
    with silent_listener() as url:
        outcome = run_both(script, url)
    assert outcome.extra_s < EXTRA_S


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(stops_reading=True),
        Behaviour(acks=False),
        Behaviour(welcomes=False),
        Behaviour(after_welcome=[b"\xc1garbage"]),
        Behaviour(after_welcome=["text"]),
        Behaviour(after_welcome=[bytes(2 << 20)]),
        Behaviour(max_message_bytes=200),
        Behaviour(refuse="shutting_down"),
        Behaviour(last_seq=10**12),
    ],
    ids=[
        "never reads",
        "never acknowledges",
        "never welcomes",
        "garbage",
        "text frame",
        "oversized frame",
        "takes only tiny messages",
        "shuts down",
        "claims to have what was never sent",
    ],
)
def test_a_server_that_misbehaves(script: Path, behaviour: Behaviour) -> None:
    with FakeServer(behaviour) as server:
        outcome = run_both(script, server.url, server.token, ("--exit-timeout-s", "0.3"))
        assert server.connections >= 1
    assert outcome.extra_s < EXTRA_S


def test_a_wrong_token(script: Path) -> None:
    with FakeServer() as server:
        outcome = run_both(script, server.url, "wrong")
        assert server.of_type(Register) == []
    assert outcome.notices[0].startswith(
        f"vramscope: the server at {server.url} refused this process: no such token; "
        "give the server's token as --token or VRAMSCOPE_TOKEN"
    )
    assert outcome.extra_s < EXTRA_S


def test_a_server_that_is_something_else(script: Path) -> None:
    with FakeApi({}) as other:
        outcome = run_both(script, other.url)
    assert f"what answers at {other.url} is not a vramscope server" in outcome.notices[0]


def test_a_server_that_dies_and_comes_back_has_every_step_once(tmp_path: Path) -> None:
    script = write_script(tmp_path, steps=100)
    server = FakeServer(port=free_port())

    def live_until(steps: int) -> None:
        server.start()
        server.wait_for(lambda s: len(list(s.rows("step"))) >= steps, timeout_s=30)
        server.stop()

    def die_twice() -> None:
        live_until(3)
        live_until(30)
        server.start()

    deaths = Thread(target=die_twice)
    deaths.start()
    try:
        run_both(script, server.url, server.token)
    finally:
        deaths.join(60)
        server.stop()
    assert [row["step"] for row in server.rows("step")] == list(range(1, 101))
    assert server.seqs() == list(range(1, len(server.seqs()) + 1))
