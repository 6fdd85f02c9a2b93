from __future__ import annotations

import os
import signal
import threading

import pytest

from vramscope import current
from vramscope.session import Session


class ActiveSession(Session):
    """Watches nothing, but says that it does until it is over."""

    is_over = False

    @property
    def is_active(self) -> bool:
        return not self.is_over


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "_session", None)


def never() -> Session:
    raise AssertionError("there is a session: none may be opened")


def test_the_first_session_is_everybodys() -> None:
    assert current.session() is None
    first = current.session_or(ActiveSession)
    assert current.session_or(never) is first
    assert current.session() is first


def test_a_session_that_is_over_is_replaced() -> None:
    first = ActiveSession()
    assert current.session_or(lambda: first) is first
    first.is_over = True
    assert current.session() is first  # a second detach must find it
    second = current.session_or(ActiveSession)
    assert second is not first
    assert current.session() is second


def test_an_attach_that_was_refused_can_be_tried_again() -> None:
    def fail() -> Session:
        raise OSError("no more threads")

    with pytest.raises(OSError, match="no more threads"):
        current.session_or(fail)
    assert current.session() is None
    refused = current.session_or(Session)  # what a wrong option gives: never active
    assert current.session_or(ActiveSession) is not refused


def test_threads_that_attach_at_once_share_one_session() -> None:
    got: list[Session] = []
    opened: list[Session] = []

    def open_session() -> Session:
        session = ActiveSession()
        opened.append(session)
        if len(opened) == 1:
            second.start()
            second.join(0.1)  # it would be through by now if nothing held it back
        return session

    second = threading.Thread(target=lambda: got.append(current.session_or(open_session)))
    got.append(current.session_or(open_session))
    second.join(10)
    assert len(got) == 2
    assert got[0] is got[1]
    assert len(opened) == 1


def test_a_child_forked_in_the_middle_of_an_attach_can_attach_itself() -> None:
    is_opening, may_open = threading.Event(), threading.Event()

    def open_slowly() -> Session:
        is_opening.set()
        may_open.wait(10)
        return ActiveSession()

    parent_session = current.session_or(ActiveSession)
    parent_session.is_over = True  # type: ignore[attr-defined]  # it is an ActiveSession
    thread = threading.Thread(target=lambda: current.session_or(open_slowly))
    thread.start()
    assert is_opening.wait(10)
    pid = os.fork()
    if pid == 0:
        signal.alarm(5)  # a lock that is held for ever ends the child, not the test run
        is_new = current.session() is None
        session = current.session_or(ActiveSession)
        os._exit(0 if is_new and session.is_active else 1)
    may_open.set()
    thread.join(10)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert current.session() not in (None, parent_session)
