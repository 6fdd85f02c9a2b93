from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.support.fake_server import Behaviour, FakeServer, free_port, wait_until
from tests.support.told_agent import FakeObserver
from vramscope.agent import Agent
from vramscope.allowance import Allowance
from vramscope.commands.user import UserCommands
from vramscope.commands.user_form import form_of
from vramscope.config import load_config
from vramscope.identity.source import IdentitySource
from vramscope.lifecycle import Ending
from vramscope_protocol.messages import AgentStatus, Command, DeviceInfo, Event, Goodbye, Register


def make(url: str, tmp_path: Path, token: str = FakeServer.token, **options: Any) -> Agent:
    config = load_config({}, url=url, token=token, spool_dir=str(tmp_path / "spool"), **options)
    return Agent(config, IdentitySource(script="train.py"), observe=FakeObserver)  # type: ignore[arg-type]  # the same methods


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


def kinds(server: FakeServer) -> list[str]:
    return [m.kind for m in server.of_type(Event)]


def test_a_life_from_attach_to_goodbye(server: FakeServer, tmp_path: Path) -> None:
    agent = make(server.url, tmp_path)
    agent.start()
    agent.start()
    server.wait_for(lambda s: s.of_type(Register))
    assert agent.stop(Ending("exception", 1, "ValueError: bad"))
    assert agent.stop()
    assert kinds(server) == ["attach", "last row"]
    assert server.seqs() == [1, 2, 3]
    goodbye = server.goodbye
    assert goodbye == Goodbye(
        3, goodbye.time_ns if goodbye else 0, "exception", 1, "ValueError: bad"
    )
    (register,) = server.of_type(Register)
    assert (register.run.name, register.run.script) == ("train", "train.py")
    assert register.rank.devices == [DeviceInfo(0, "Fake")]
    assert register.rank.software["torch"] == "2.9"
    assert register.rank.commands == ["stats"]
    assert register.rank.pid == os.getpid()


def test_a_detach_is_no_exit(server: FakeServer, tmp_path: Path) -> None:
    agent = make(server.url, tmp_path)
    agent.start()
    assert agent.stop(timeout_s=20)
    goodbye = server.goodbye
    assert goodbye is not None
    assert (goodbye.reason, goodbye.exit_code) == ("detach", None)


def test_a_server_on_another_machine_is_told_of_once_with_the_way_to_let_it_act(
    server: FakeServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent = make(server.url, tmp_path)
    # The fake server is on this one.
    config = replace(agent.config, allow="observe", observes_by_default=True)
    cast(Any, agent.observer).allowance = Allowance(config)
    agent.start()
    server.wait_for(lambda s: "attach" in kinds(s))
    cast(Any, agent.observer).torch = "2.9.1"  # news: it registers once more
    cast(Any, agent.observer).offer_status(AgentStatus(1.0, 0.0))
    server.wait_for(lambda s: len(s.of_type(Register)) == 2)
    agent.stop(timeout_s=20)
    lines = [line for line in capfd.readouterr().err.splitlines() if "--allow control" in line]
    assert lines == [
        "vramscope: the server is on another machine, so nobody there may act on this job: "
        "--allow control or VRAMSCOPE_ALLOW=control lets them"
    ]
    assert [each.rank.allow for each in server.of_type(Register)] == ["observe", "observe"]


def test_a_server_that_others_can_reach_is_told_at_once_that_it_may_not_act(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with FakeServer(Behaviour(reachable=True)) as server:
        agent = make(server.url, tmp_path)
        agent.start()
        server.wait_for(lambda s: "attach" in kinds(s))
        cast(Any, agent.observer).offer_status(AgentStatus(1.0, 0.0))
        server.wait_for(lambda s: len(s.of_type(Register)) == 2)
        agent.stop(timeout_s=20)
    # It cannot know before the welcome; until it has said so, it refuses.
    assert [each.rank.allow for each in server.of_type(Register)] == ["control", "observe"]
    assert "other machines can reach the server, so nobody there may act" in capfd.readouterr().err


def test_the_dashboard_is_named_without_the_token_that_was_given(
    server: FakeServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent = make(server.url, tmp_path)
    agent.start()
    agent.stop(timeout_s=20)
    assert capfd.readouterr().err == f"vramscope: dashboard: {server.url}\n"


def test_a_notebook_that_saves_the_line_gets_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A local server's own token stands in the printed address, unless the line is saved.
    written = io.StringIO()
    monkeypatch.delitem(sys.modules, "vramscope.notebook.extension", raising=False)
    monkeypatch.setattr("vramscope.agent.is_stderr_saved", lambda: True)
    monkeypatch.setattr("sys.stderr", written)
    with FakeServer() as server:
        agent = make(server.url, tmp_path)
        monkeypatch.setattr(agent._targets, "_local_token", server.token)
        agent.start()
        target = agent.wait_for_server(20)
        assert target is not None
        assert server.token in str(agent.page_url())
        agent.stop(timeout_s=20)
    assert f"dashboard: {server.url}; %load_ext vramscope" in written.getvalue()
    assert server.token not in written.getvalue()


def test_a_notebook_that_shows_the_page_gets_no_line(
    server: FakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("vramscope.agent.is_stderr_saved", lambda: True)
    monkeypatch.setitem(sys.modules, "vramscope.notebook.extension", sys)
    agent = make(server.url, tmp_path)
    agent.start()
    assert agent.wait_for_server(20) is not None
    agent.stop(timeout_s=20)
    assert capfd.readouterr().err == ""


def test_a_command_reaches_the_observer(server: FakeServer, tmp_path: Path) -> None:
    agent = make(server.url, tmp_path)
    agent.start()
    server.wait_for(lambda s: "attach" in kinds(s))
    server.send(Command("c1", "stats"))
    observer: Any = agent.observer
    wait_until(lambda: observer.submitted, "the command")
    agent.stop(timeout_s=20)
    assert observer.submitted == [Command("c1", "stats")]


def test_whether_steps_are_alike_on_all_ranks_is_told_and_told_again(
    server: FakeServer, tmp_path: Path
) -> None:
    agent = make(server.url, tmp_path)
    observer: Any = agent.observer
    agent.start()
    server.wait_for(lambda s: "attach" in kinds(s))
    observer.counts_alike = False
    agent._offer_status(AgentStatus(1.0, 0.0))
    server.wait_for(lambda s: len(s.of_type(Register)) == 2)
    agent.stop(timeout_s=20)
    told = [register.rank.steps_from_start for register in server.of_type(Register)]
    assert told == [True, False]


def test_another_device_than_expected_is_told(server: FakeServer, tmp_path: Path) -> None:
    agent = make(server.url, tmp_path)
    agent.start()
    observer: Any = agent.observer
    observer.on_device_change(DeviceInfo(1, "NVIDIA H200", "GPU-1", 5))
    agent.stop(timeout_s=20)
    (event,) = [e for e in server.of_type(Event) if e.kind == "device"]
    assert event.data["device"]["name"] == "NVIDIA H200"
    assert event.data["software"]["torch"] == "2.9"


def test_what_becomes_known_later_is_registered_on_a_new_connection(
    server: FakeServer, tmp_path: Path
) -> None:
    agent = make(server.url, tmp_path)
    agent.start()
    server.wait_for(lambda s: "attach" in kinds(s))
    observer: Any = agent.observer
    observer.offer_status(AgentStatus(1.0, 0.0))
    observer.torch = "2.9.1+cu130"
    observer.offer_status(AgentStatus(1.0, 0.0))
    server.wait_for(lambda s: len(s.of_type(Register)) == 2)
    observer.torch = "not so soon again"
    observer.offer_status(AgentStatus(1.0, 0.0))
    agent.outbox.put(Event(0, 1, "afterwards"))
    assert agent.stop(timeout_s=20)
    first, second = server.of_type(Register)
    assert first.stream == second.stream
    assert second.rank.software["torch"] == "2.9.1+cu130"
    assert server.seqs() == [1, 2, 3, 4]
    assert server.lost.messages == {}


def test_a_command_that_the_job_declares_later_is_told(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = UserCommands()
    table.declare(print, form_of(lambda: None, "early"))
    monkeypatch.setattr("vramscope.agent.DECLARED", table)
    agent = make(server.url, tmp_path)
    agent.start()
    server.wait_for(lambda s: "attach" in kinds(s))
    table.declare(print, form_of(lambda: None, "late"))
    cast(Any, agent.observer).offer_status(AgentStatus(1.0, 0.0))
    server.wait_for(lambda s: len(s.of_type(Register)) == 2)
    assert agent.stop(timeout_s=20)
    first, second = server.of_type(Register)
    assert [each.name for each in first.rank.user_commands] == ["user.early"]
    assert [each.name for each in second.rank.user_commands] == ["user.early", "user.late"]


@pytest.mark.parametrize("behaviour", [Behaviour(acks=False), Behaviour(stops_reading=True)])
def test_a_hanging_server_costs_no_more_than_the_deadline(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], behaviour: Behaviour
) -> None:
    with FakeServer(behaviour) as server:
        agent = make(server.url, tmp_path, exit_timeout_s=0.4)
        agent.start()
        server.wait_for(lambda s: s.of_type(Register))
        started_s = time.monotonic()
        assert not agent.stop(Ending())
        assert time.monotonic() - started_s < 1.0
    assert "not everything could be delivered" in capfd.readouterr().err


def test_without_a_server_the_end_does_not_wait(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent = make(f"http://127.0.0.1:{free_port()}", tmp_path, exit_timeout_s=30)
    agent.start()
    started_s = time.monotonic()
    assert not agent.stop(Ending())
    assert time.monotonic() - started_s < 5
    assert "not everything could be delivered" in capfd.readouterr().err


def test_the_spool_is_gone_at_the_end_even_if_it_was_not_delivered(tmp_path: Path) -> None:
    agent = make(f"http://127.0.0.1:{free_port()}", tmp_path, outbox_bytes=20_000)
    agent.start()
    for _ in range(20):
        agent.outbox.put(Event(0, 1, "mark", None, "x" * 1000))
        agent.outbox.spill()
    assert agent.outbox.spool_bytes > 0
    agent.stop(Ending())
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_thread_that_hangs_in_a_disk_access_does_not_hold_up_the_end(tmp_path: Path) -> None:
    agent = make(f"http://127.0.0.1:{free_port()}", tmp_path, exit_timeout_s=0.4)
    agent.start()
    spool = agent._delivery.outbox._spool
    assert spool is not None
    with spool._lock:  # as the sampler holds it in a write that never returns
        end = threading.Thread(target=agent.stop, daemon=True)
        end.start()
        end.join(5)
        assert not end.is_alive()


def test_a_forked_child_has_no_agent_and_leaves_the_parents_alone(
    server: FakeServer, tmp_path: Path
) -> None:
    agent = make(server.url, tmp_path)
    agent.start()
    server.wait_for(lambda s: "attach" in kinds(s))
    pid = os.fork()
    if pid == 0:
        agent.forget_after_fork()
        agent.stop(Ending())
        os._exit(len([t for t in threading.enumerate() if t.name.startswith("vramscope")]))
    assert os.waitpid(pid, 0)[1] == 0
    agent.outbox.put(Event(0, 1, "after the fork"))
    server.wait_for(lambda s: "after the fork" in kinds(s))
    assert agent.stop(timeout_s=20)
    assert server.connections == 1
