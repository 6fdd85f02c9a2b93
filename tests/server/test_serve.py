from __future__ import annotations

import contextlib
import json
import socket
import stat
import threading
import time
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.support.scripted_agent import ALLOCATED, socket_agent
from tests.support.server_process import ServerProcess
from tests.support.server_thread import server_thread
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.messages import Error
from vramscope_server.runtime_file import ServerEntry
from vramscope_server.serve import bind
from vramscope_server.settings import Limits


def close_code(connection: ClientConnection) -> int | None:
    """Read to the end of a connection; the close code that came."""
    try:
        while True:
            connection.recv(timeout=15)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else None


def test_an_occupied_port_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            VramscopeError, match=f"cannot listen on 127.0.0.1 port {port}: Address"
        ):
            bind("127.0.0.1", port)


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_said_in_one_line(host: str) -> None:
    with pytest.raises(VramscopeError, match=f"cannot listen on {host}"):
        bind(host, 0)


def test_a_life_of_a_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, token=None) as server:
        # What it printed lets a person and an agent in, and is written nowhere else.
        assert server.page_url.startswith(f"http://127.0.0.1:{server.port}/?token=")
        assert server.get("/api/v1/session")["server"]["port"] == server.port
        path = server.runtime_folder / "vramscope" / "server.json"
        entry = msgspec.json.decode(path.read_bytes(), type=ServerEntry)
        assert (entry.url, entry.token, entry.pid) == (server.url, server.token, server.pid)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket_agent(entry.url, entry.token) as agent:
            agent.samples(5)
            agent.wait_acked()
            assert server.get("/api/v1/runs")[0]["state"] == "live"

            # SIGTERM: the agent is told, what it sent is stored, the file goes, the code is 0.
            agent.samples(5)
            ended: list[int] = []
            stopper = threading.Thread(target=lambda: ended.append(server.terminate()))
            stopper.start()
            message = agent.receive()
            while not isinstance(message, Error):
                message = agent.receive()
            assert message.code == "shutting_down"
            stopper.join(20)
        assert ended == [0]
        assert not path.exists()
        assert server.log_text().count("\n") == 1, server.log_text()

        server.start()
        assert server.get("/api/v1/runs")[0]["state"] == "live"
        series = server.get(f"/api/v1/runs/train/series?fields={ALLOCATED}")
        assert len(series["time_ns"]) == 10


def test_a_killed_server_comes_back_with_everything_that_it_acknowledged(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, socket_agent(server.url) as agent:
        agent.samples(100)
        agent.wait_acked()
        server.kill()
        server.restart()
        agent.reconnect()
        assert agent.acked == 1
        agent.samples(1)
        agent.wait_acked()
        assert server.get("/api/v1/runs/train")["ranks"][0]["samples_received"] == 101


def test_a_command_survives_a_kill_of_the_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, socket_agent(server.url) as agent:
        agent.samples(1)
        agent.wait_acked()
        path = "/api/v1/runs/train/commands"
        posted = server.request("POST", path, {"name": "gc_collect", "deadline_s": 60}).body
        received = agent.wait_command()
        server.kill()
        server.restart()
        assert server.get(f"{path}/{posted['id']}")["state"] == "queued"
        agent.reconnect()
        # The same id again: an agent runs it once. The receipt of the first time counts.
        assert agent.wait_command().id == received.id
        agent.update(received, "done", step=4)
        agent.wait_acked()
        done = server.wait_until(
            lambda: (
                found
                if (found := server.get(f"{path}/{posted['id']}"))["state"] == "done"
                else None
            )
        )
        assert done is not None
        assert done["receipts"]["0"]["step"] == 4
        server.wait_until(lambda: server.get("/api/v1/audit")["audit"][0]["result"] != "accepted")


def test_a_server_that_nobody_needs_ends_itself(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, options=["--idle-exit-s", "0.4"]) as server:
        with socket_agent(server.url) as agent:
            agent.samples(1)
            agent.wait_acked()
            start_s = time.monotonic()
            while time.monotonic() - start_s < 1.0:
                agent.status()
                assert server.request("GET", "/healthz").status == 200
                time.sleep(0.1)
        assert server.wait_exit() == 0
        assert not (server.runtime_folder / "vramscope" / "server.json").exists()


def test_no_runtime_file_when_none_is_wanted(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, options=["--no-runtime-file"]) as server:
        assert server.get("/api/v1/runs") == []
        assert list(server.runtime_folder.iterdir()) == []


def test_a_server_on_the_network_prints_no_token(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, options=["--host", "0.0.0.0"]) as server:
        assert "token" not in server.page_url
        assert "test-token" not in server.log_text()
        assert server.get("/api/v1/runs") == []
        assert list(server.runtime_folder.iterdir()) == []


def test_no_secret_reaches_the_log(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        server.request("GET", "/?token=test-token-wrong", token="")
        server.request("GET", "/api/v1/nope?token=test-token-wrong")
        with pytest.raises(AssertionError, match="auth_failed"):
            socket_agent(server.url, "test-token-wrong").open()
        assert server.terminate() == 0
        assert "test-token-wrong" not in server.log_text()


def test_a_slow_page_is_cut_off_and_the_others_go_on(tmp_path: Path) -> None:
    limits = Limits(live_queue_frames=200, live_close_s=15)
    with server_thread(tmp_path, limits) as server, server.agent() as agent:
        agent.samples(1)
        agent.wait_acked()
        slow, quick = server.live(max_queue=1), server.live()
        for page in (slow, quick):
            page.send(json.dumps(_follow("train", [ALLOCATED])))
        assert json.loads(quick.recv(timeout=10))["type"] == "hello"
        # The quick page is read to its end by a thread of its own. The agent never runs further
        # ahead of it than half of the queue: everything here shares one interpreter.
        last_step = 0
        moved_on = threading.Condition()

        def read() -> None:
            nonlocal last_step
            while last_step < 800:
                event = json.loads(quick.recv(timeout=15)).get("event", {})
                if event.get("kind") == "samples":
                    with moved_on:
                        last_step = event["columns"]["step"][-1]
                        moved_on.notify()

        def has_seen(step: int) -> bool:
            with moved_on:
                return moved_on.wait_for(lambda: last_step >= step, timeout=15)

        reader = threading.Thread(target=read)
        reader.start()
        for step in range(1, 801):
            agent.samples(500, step=step)
            if step % 50 == 0:
                assert has_seen(step - 50), f"the quick page saw step {last_step} last"
        agent.wait_acked()
        assert has_seen(800), f"the quick page saw step {last_step} last"
        reader.join()
        assert close_code(slow) == 4429
        quick.send(json.dumps({"type": "ping", "id": 99}))
        while json.loads(quick.recv(timeout=10)).get("id") != 99:
            pass


def test_an_oversized_frame_of_a_page_ends_its_connection(tmp_path: Path) -> None:
    with server_thread(tmp_path) as server:
        other, big, huge = (server.live() for _ in range(3))
        big.send("x" * 20_000)
        with contextlib.suppress(ConnectionClosed):  # cut off before the last byte was out
            huge.send("x" * 2_000_000)
        assert close_code(big) == 4413
        # None: the reset that cut the sender off overtook the frame that says 1009.
        assert close_code(huge) in (1009, None)
        other.send(json.dumps({"type": "ping", "id": 1}))
        assert json.loads(other.recv(timeout=10))["type"] == "hello"
        assert json.loads(other.recv(timeout=10)) == {"type": "result", "id": 1, "ok": True}


def test_a_page_that_floods_with_requests_is_served_or_cut_off_and_nobody_else_notices(
    tmp_path: Path,
) -> None:
    with server_thread(
        tmp_path, Limits(live_queue_frames=200, live_close_s=0.2, stalled_close_s=0.2)
    ) as server:
        flood, other = server.live(max_queue=1), server.live()
        with pytest.raises(ConnectionClosed) as ended:  # noqa: PT012  # which send fails is open
            for number in range(1, 100_000):
                flood.send(json.dumps({**_follow("x" * 15_000, []), "id": number}))
        assert ended.value.rcvd is None or ended.value.rcvd.code == 4429
        other.send(json.dumps({"type": "ping", "id": 1}))
        assert json.loads(other.recv(timeout=10))["type"] == "hello"
        assert json.loads(other.recv(timeout=10))["ok"]


def test_pages_are_told_at_shutdown(tmp_path: Path) -> None:
    with server_thread(tmp_path) as server:
        page = server.live()
        assert json.loads(page.recv(timeout=10))["type"] == "hello"
        server.stop()
        assert close_code(page) == 4503


def _follow(run: str, fields: list[str]) -> dict[str, object]:
    return {"type": "subscribe_run", "id": 1, "run": run, "fields": fields}
