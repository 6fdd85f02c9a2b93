from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import vramscope
from tests.support.fake_server import FakeServer, free_port
from vramscope.config import load_config
from vramscope.identity.inheritance import VARIABLE, disinherit, inherited
from vramscope.session import Session, start_session
from vramscope_protocol.messages import Command, CommandUpdate, Event, Goodbye, Register


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server
        vramscope.detach()


def attach(server: FakeServer, tmp_path: Path, run: str = "a run") -> Session:
    return vramscope.attach(server.url, server.token, run, spool_dir=str(tmp_path / "spool"))


def test_attaching_twice_is_one_attach(server: FakeServer, tmp_path: Path) -> None:
    first = attach(server, tmp_path)
    assert attach(server, tmp_path, "another name") is first
    server.wait_for(lambda s: s.of_type(Event))
    vramscope.detach()
    assert len(server.of_type(Register)) == 1
    assert server.of_type(Register)[0].run.name == "a run"


def test_after_a_detach_a_new_attach_is_a_new_stream(server: FakeServer, tmp_path: Path) -> None:
    first = attach(server, tmp_path)
    server.wait_for(lambda s: s.of_type(Event))
    vramscope.detach()
    vramscope.detach()
    second = attach(server, tmp_path)
    assert second is not first
    server.wait_for(lambda s: len(s.of_type(Register)) == 2)
    vramscope.detach()
    one, two = server.of_type(Register)
    assert one.stream != two.stream
    assert [goodbye.reason for goodbye in server.of_type(Goodbye)] == ["detach", "detach"]


def test_a_detach_tells_whether_everything_was_delivered(
    server: FakeServer, tmp_path: Path
) -> None:
    session = attach(server, tmp_path)
    assert session.wait_for_server(20) is not None
    assert session.detach()
    assert session.detach()  # nothing was left
    unheard = vramscope.attach(
        f"http://127.0.0.1:{free_port()}", "token", spool_dir=str(tmp_path / "spool")
    )
    assert not unheard.detach()


def test_the_last_words_on_stderr_are_known(tmp_path: Path) -> None:
    session = vramscope.attach("http://127.0.0.1:9", "token", spool_dir=str(tmp_path / "spool"))
    deadline_s = time.monotonic() + 20
    while not session.last_notice and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert "http://127.0.0.1:9" in session.last_notice
    session.detach()
    assert session.last_notice == ""


def test_why_a_session_cannot_start_is_raised_to_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    hook = sys.excepthook
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="new thread"):
        start_session(load_config({}))
    assert sys.excepthook is hook


def test_the_server_is_known_once_it_has_taken_the_stream(
    server: FakeServer, tmp_path: Path
) -> None:
    session = attach(server, tmp_path)
    target = session.wait_for_server(20)
    assert target is not None
    assert (target.address.http_url, target.token) == (server.url, server.token)
    assert session.page_url == f"{server.url}/runs/{session.run_id}"
    vramscope.detach()
    assert session.wait_for_server(0) is None
    assert session.page_url is None


def test_no_server_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    session = vramscope.attach(
        f"http://127.0.0.1:{free_port()}", "token", spool_dir=str(tmp_path / "spool")
    )
    assert session.wait_for_server(0.01) is None
    assert session.page_url is None
    vramscope.detach()


def test_a_process_that_is_attached_to_again_is_in_the_same_run_unless_it_is_named_anew(
    server: FakeServer, tmp_path: Path
) -> None:
    def attach_again(run: str | None = None, launch_id: str | None = None) -> str:
        spool = str(tmp_path / "spool")
        session = vramscope.attach(
            server.url, server.token, run, launch_id=launch_id, spool_dir=spool
        )
        vramscope.detach()
        return session.run_id

    first = attach_again(run="given once", launch_id="a launch")
    assert attach_again() == first
    assert attach_again(run="given once") == first
    assert attach_again(run="another") != first


def test_children_inherit_until_it_is_detached(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    session = attach(server, tmp_path, "the run")
    assert inherited() is None
    session.bequeath()
    left = inherited()
    assert left is not None
    assert (left.run_name, left.config.token) == ("the run", server.token)
    vramscope.detach()
    assert inherited() is None
    session.bequeath()  # a session that is over has nothing to leave
    assert inherited() is None


def test_who_leaves_its_rank_to_a_child_lets_further_children_inherit(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    session = attach(server, tmp_path, "the run")
    session.bequeath()
    server.wait_for(lambda s: s.of_type(Register))
    session.leave_to_child("they are the ranks")
    assert not session.is_active
    assert inherited() is not None
    assert server.goodbye is not None
    assert server.goodbye.reason == "detach"
    assert server.goodbye.text == "they are the ranks"
    disinherit()


def test_a_session_that_is_over_still_says_what_it_was(server: FakeServer, tmp_path: Path) -> None:
    session = attach(server, tmp_path, "the run")
    before = session.run_id, session.run_name, session.rank
    vramscope.detach()
    assert (session.run_id, session.run_name, session.rank) == before
    assert (before[0] != "", before[1:]) == (True, ("the run", 0))


def test_steps_and_values_arrive(server: FakeServer, tmp_path: Path) -> None:
    attach(server, tmp_path)
    for number in range(3):
        vramscope.log(loss=float(number))
        vramscope.step()
    vramscope.detach()
    rows = list(server.rows("step"))
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert [row["user.loss"] for row in rows] == [0.0, 1.0, 2.0]


def test_a_loop_that_asks_is_told_to_stop_and_is_not_ended(
    server: FakeServer, tmp_path: Path
) -> None:
    session = attach(server, tmp_path)
    assert not vramscope.should_stop()
    server.wait_for(lambda s: s.of_type(Event))
    server.send(Command("c1", "stop"))
    server.wait_for(lambda s: s.of_type(CommandUpdate))
    assert not vramscope.should_stop()  # not before the end of a step
    session.step()
    assert vramscope.should_stop()
    assert session.is_stop_wanted
    vramscope.detach()
    assert not vramscope.should_stop()


def test_a_loop_that_does_not_ask_is_ended_once_and_the_receipt_arrives(
    server: FakeServer, tmp_path: Path
) -> None:
    session = attach(server, tmp_path)
    server.wait_for(lambda s: s.of_type(Event))
    server.send(Command("c1", "stop"))
    server.wait_for(lambda s: s.of_type(CommandUpdate))
    with pytest.raises(vramscope.Stopped):
        session.step()
    session.step()
    vramscope.detach()
    last = server.of_type(CommandUpdate)[-1]
    assert (last.state, last.receipt and last.receipt.step) == ("done", 1)


def test_a_framework_that_trains_is_asked_to_end(server: FakeServer, tmp_path: Path) -> None:
    session = attach(server, tmp_path)
    session.framework_begins("The Trainer of X")
    server.wait_for(lambda s: s.of_type(Event))
    server.send(Command("c1", "stop"))
    server.wait_for(lambda s: s.of_type(CommandUpdate))
    session.framework_step()
    assert session.is_stop_wanted
    session.framework_ends()


def test_everything_is_harmless_when_not_attached() -> None:
    vramscope.detach()
    vramscope.step()
    vramscope.log(loss=1.0, text="anything", thing=object())
    vramscope.detach()


def test_a_wrong_option_is_said_and_does_not_raise(capfd: pytest.CaptureFixture[str]) -> None:
    session = vramscope.attach(url="not a url")
    assert not session.is_active
    session.step()
    session.log(a=1)
    session.detach()
    error = capfd.readouterr().err
    assert error.startswith("vramscope: not attached: url: expected a server URL")
    assert error.count("\n") == 1


def test_a_spawned_worker_that_imports_the_script_is_no_rank(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import multiprocessing, vramscope\n"
        f"session = vramscope.attach(spool_dir={str(tmp_path / 'spool')!r}, local_server=False)\n"
        "def work(_): return session.is_active\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(session.is_active, pool.map(work, [0]))\n"
    )
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "True [False]\n"
    assert [line for line in done.stderr.splitlines() if not line.startswith("vramscope: ")] == []


@pytest.mark.expects_guarded_errors
@pytest.mark.parametrize("thread", ["vramscope-sampler", "vramscope-transport"])
def test_where_no_thread_can_be_started_nothing_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thread: str
) -> None:
    start = threading.Thread.start

    def start_if_allowed(self: threading.Thread) -> None:
        if self.name == thread:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_if_allowed)
    before = sys.excepthook, list(sys.meta_path)
    session = vramscope.attach(
        "http://127.0.0.1:9", "token", spool_dir=str(tmp_path), exit_timeout_s=0.1
    )
    assert not session.is_active
    assert (sys.excepthook, sys.meta_path) == before
