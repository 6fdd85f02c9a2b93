from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vramscope
from tests.support.fake_server import FakeServer, free_port
from vramscope import arrival, current
from vramscope._version import __version__
from vramscope.attaching.arrive import FolderFinder
from vramscope.session import Session
from vramscope_protocol.messages import Event, Goodbye, Register


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server
        vramscope.detach()


def ask(action: str, **options: Any) -> list[dict[str, Any]]:
    """Every answer, in order, of an arrival on a thread of its own, as in a real process."""
    answers: list[dict[str, Any]] = []
    request = {"action": action, "options": options}
    thread = threading.Thread(target=arrival.act, args=(request, answers.append))
    thread.start()
    thread.join(30)
    return answers


def attach(server: FakeServer, folder: Path, **options: Any) -> list[dict[str, Any]]:
    common = {"url": server.url, "token": server.token, "spool_dir": str(folder / "spool")}
    return ask("attach", **(common | options))


def test_the_answer_names_run_rank_and_page(server: FakeServer, tmp_path: Path) -> None:
    answers = attach(server, tmp_path, run="a run")
    session = current.session()
    assert session is not None
    assert session.is_active
    assert answers[-1] == {
        "ok": True,
        "already": False,
        "run_id": session.run_id,
        "run_name": "a run",
        "rank": 0,
        "version": __version__,
        "url": f"{server.url}/runs/{session.run_id}",
    }
    # A first answer comes before the server has said anything.
    assert [answer.get("final", True) for answer in answers] in ([True], [False, True])


def test_its_steps_are_not_those_of_ranks_that_were_watched_from_the_start(
    server: FakeServer, tmp_path: Path
) -> None:
    attach(server, tmp_path)
    vramscope.detach()
    vramscope.attach(server.url, server.token, spool_dir=str(tmp_path / "spool"))
    server.wait_for(lambda s: len(s.of_type(Register)) == 2)
    vramscope.detach()
    late, in_code = server.of_type(Register)
    assert (late.rank.steps_from_start, in_code.rank.steps_from_start) == (False, True)


def test_attaching_twice_is_one_attach(server: FakeServer, tmp_path: Path) -> None:
    first = attach(server, tmp_path, run="first")[-1]
    second = attach(server, tmp_path, run="second")
    assert [answer["already"] for answer in second] == [True]
    assert {**second[0], "already": False} == first
    in_code = vramscope.attach(run="third")
    assert in_code.run_name == "first"
    vramscope.detach()
    assert len({register.stream for register in server.of_type(Register)}) == 1


def test_a_session_of_the_jobs_own_is_left_to_it(server: FakeServer, tmp_path: Path) -> None:
    own = vramscope.attach(server.url, server.token, "own", spool_dir=str(tmp_path / "spool"))
    answer = attach(server, tmp_path, run="another")[-1]
    assert (answer["already"], answer["run_name"]) == (True, "own")
    assert own.is_active


def test_detach_says_what_became_of_the_numbers(server: FakeServer, tmp_path: Path) -> None:
    attach(server, tmp_path, run="a run")
    assert [answer["message"] for answer in ask("detach")] == ["everything measured was delivered"]
    assert [goodbye.reason for goodbye in server.of_type(Goodbye)] == ["detach"]
    again = ask("detach")[-1]
    assert (again["ok"], again["already"], again["message"]) == (True, True, "it was not attached")


def test_a_detach_without_a_server_admits_the_loss(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    vramscope.attach(url, "token", spool_dir=str(tmp_path / "spool"))
    answer = ask("detach")[-1]
    assert answer["ok"]
    assert "no server acknowledged" in answer["message"]


def test_without_a_server_the_answer_says_why_there_is_no_page(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    answers = ask("attach", url=url, token="t", spool_dir=str(tmp_path / "spool"))
    vramscope.detach()
    assert [answer.get("final", True) for answer in answers] == [False, True]
    assert (answers[-1]["ok"], answers[-1]["url"]) == (True, "")
    assert url in answers[-1]["message"]


def test_waiting_for_the_page_ends_with_a_detach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "last_notice", "")  # nothing is said: it would wait
    answers: list[dict[str, Any]] = []
    answered = threading.Event()

    def reply(answer: dict[str, Any]) -> None:
        answers.append(answer)
        answered.set()

    url = f"http://127.0.0.1:{free_port()}"
    options = {"url": url, "token": "t", "spool_dir": str(tmp_path / "spool")}
    request = {"action": "attach", "options": options}
    thread = threading.Thread(target=arrival.act, args=(request, reply))
    thread.start()
    assert answered.wait(20)
    vramscope.detach()
    thread.join(arrival.URL_WAIT_S / 2)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate_hz": "fast"}, "rate_hz: expected a rate in Hz"),
        ({"nonsense": 1}, "no option named 'nonsense'"),
        ({"emulate": True}, "emulation has to be there from the start"),
    ],
)
def test_options_that_cannot_be_used_are_the_answer(options: dict[str, Any], words: str) -> None:
    answer = ask("attach", **options)[-1]
    assert not answer["ok"]
    assert answer["message"].startswith(words)
    assert current.session() is None or not current.session().is_active  # type: ignore[union-attr]


def test_an_attach_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: object, *, is_late: bool) -> None:
        assert is_late
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(arrival, "start_session", refuse)
    answer = ask("attach")[-1]
    assert (answer["ok"], answer["message"]) == (False, "RuntimeError: can't start new thread")


def test_who_found_vramscope_leaves_with_it(server: FakeServer, tmp_path: Path) -> None:
    finder = FolderFinder([])
    before = list(sys.meta_path)
    sys.meta_path.append(finder)
    arrival.found_by(finder)
    arrival.found_by(None)
    attach(server, tmp_path)
    assert finder in sys.meta_path
    ask("detach")
    assert sys.meta_path == before


def test_the_attach_is_an_event_of_the_run(server: FakeServer, tmp_path: Path) -> None:
    attach(server, tmp_path)
    server.wait_for(lambda s: any(event.kind == "attach" for event in s.of_type(Event)))
