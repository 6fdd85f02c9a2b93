from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.oom.exception_hooks import ExceptionHooks


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What Python would have shown."""
    shown: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: shown.append(error))
    monkeypatch.setattr(threading, "excepthook", lambda args: shown.append(args.exc_value))
    return shown


@pytest.fixture
def seen(shown: list[BaseException]) -> Iterator[list[tuple[BaseException, bool]]]:
    seen: list[tuple[BaseException, bool]] = []
    hooks = ExceptionHooks(lambda error, is_end: seen.append((error, is_end)))
    hooks.install()
    yield seen
    hooks.remove()


def fail_in_thread(error: BaseException) -> None:
    def fail() -> None:
        raise error

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


def test_both_kinds_are_seen_and_shown_as_before(
    seen: list[tuple[BaseException, bool]], shown: list[BaseException]
) -> None:
    first, second = RuntimeError("main"), RuntimeError("thread")
    sys.excepthook(RuntimeError, first, None)
    fail_in_thread(second)
    assert seen == [(first, True), (second, False)]
    assert shown == [first, second]


def test_at_a_prompt_it_is_not_the_end(
    seen: list[tuple[BaseException, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    error = RuntimeError("at a prompt")
    sys.excepthook(RuntimeError, error, None)
    assert seen == [(error, False)]


def test_removed_it_leaves_the_hooks_of_others_alone(shown: list[BaseException]) -> None:
    before: tuple[Any, Any] = (sys.excepthook, threading.excepthook)
    hooks = ExceptionHooks(lambda error, is_end: None)
    hooks.install()
    hooks.remove()
    assert (sys.excepthook, threading.excepthook) == before
    hooks = ExceptionHooks(lambda error, is_end: pytest.fail("removed"))
    hooks.install()
    ours = sys.excepthook

    def chained(kind: Any, error: Any, trace: Any) -> None:
        ours(kind, error, trace)

    sys.excepthook = chained
    hooks.remove()
    assert sys.excepthook is chained
    error = RuntimeError("later")
    sys.excepthook(RuntimeError, error, None)
    assert shown == [error]


@pytest.mark.expects_guarded_errors
def test_what_goes_wrong_on_our_side_hides_nothing(shown: list[BaseException]) -> None:
    def fail(error: BaseException, is_end: bool) -> None:
        raise ValueError("ours")

    hooks = ExceptionHooks(fail)
    hooks.install()
    error = RuntimeError("the job's")
    sys.excepthook(RuntimeError, error, None)
    hooks.forget_after_fork()
    assert shown == [error]
