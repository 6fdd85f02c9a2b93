"""A function of somebody else is followed, and keeps behaving as it did."""

from __future__ import annotations

import gc
import os
import sys
import threading
import traceback
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.patch import Patch


class Follower:
    """What the patch told, in order."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def before(self, first: Any) -> None:
        self.calls.append(("before", first))

    def after(self, first: Any, error: BaseException | None) -> None:
        self.calls.append(("after", first, error))


class Owner:
    """Somebody else's class."""

    def work(self, number: int, *, add: int = 0) -> int:
        """Work."""
        if number < 0:
            raise ValueError("too low")
        return number + add


@pytest.fixture
def follower() -> Follower:
    return Follower()


@pytest.fixture
def patch(follower: Follower) -> Iterator[Patch]:
    patch = Patch(Owner, "work", follower.before, follower.after, "test")
    patch.install()
    yield patch
    patch.remove()


def test_the_call_is_the_same_and_is_followed(patch: Patch, follower: Follower) -> None:
    owner = Owner()
    assert owner.work(1, add=2) == 3
    assert follower.calls == [("before", owner), ("after", owner, None)]
    assert (Owner.work.__name__, Owner.work.__doc__) == ("work", "Work.")


def test_what_it_returns_is_told_if_that_is_wanted(follower: Follower) -> None:
    patch = Patch(Owner, "work", follower.before, follower.after, "test", follower.calls.append)
    patch.install()
    try:
        owner = Owner()
        assert owner.work(1, add=2) == 3
        assert follower.calls == [("before", owner), 3, ("after", owner, None)]
        with pytest.raises(ValueError, match="too low"):
            owner.work(-1)
        assert len(follower.calls) == 5
    finally:
        patch.remove()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="3.10 cannot hide the line")
@pytest.mark.parametrize("is_forgotten", [False, True])
def test_an_error_leaves_with_the_traceback_it_would_have(
    patch: Patch, follower: Follower, is_forgotten: bool
) -> None:
    if is_forgotten:
        patch.forget_after_fork()
    with pytest.raises(ValueError, match="too low") as raised:
        Owner().work(-1)
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert names == [test_an_error_leaves_with_the_traceback_it_would_have.__name__, "work"]
    assert is_forgotten or follower.calls[1][2] is raised.value


def test_an_error_keeps_nothing_alive(patch: Patch, follower: Follower) -> None:
    """Many jobs switch the garbage collector off, and a traceback holds frames and tensors."""
    gc.disable()
    try:

        def fail() -> weakref.ref[Owner]:
            owner = Owner()
            try:
                owner.work(-1)
            except ValueError:
                follower.calls.clear()
            return weakref.ref(owner)

        assert fail()() is None
    finally:
        gc.enable()


@pytest.mark.expects_guarded_errors
def test_errors_of_ours_stay_ours() -> None:
    patch = Patch(Owner, "work", lambda first: [][0], lambda first, error: [][0], "test")
    patch.install()
    try:
        assert Owner().work(1) == 1
        with pytest.raises(ValueError, match="too low"):
            Owner().work(-1)
    finally:
        patch.remove()


def test_removed_the_function_is_the_old_one(follower: Follower) -> None:
    original = Owner.work
    patch = Patch(Owner, "work", follower.before, follower.after, "test")
    patch.install()
    patch.install()
    assert Owner.work is not original
    patch.remove()
    assert Owner.work is original
    patch.install()
    assert Owner().work(1) == 1
    assert len(follower.calls) == 2
    patch.remove()


def test_under_somebody_elses_wrapper_it_only_passes_on(follower: Follower) -> None:
    module: Any = SimpleNamespace(work=lambda number: number)
    patch = Patch(module, "work", follower.before, follower.after, "test")
    patch.install()
    ours = module.work
    theirs = module.work = lambda number: ours(number) + 1
    patch.remove()
    assert module.work is theirs
    assert module.work(1) == 2  # type: ignore[no-untyped-call]
    assert follower.calls == []


def test_removed_in_the_middle_of_a_call_it_says_no_more(follower: Follower) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def work(first: int) -> int:
        inside.set()
        assert go_on.wait(10)
        return first

    module = SimpleNamespace(work=work)
    patch = Patch(module, "work", follower.before, follower.after, "test")
    patch.install()
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(module.work(7)))
    thread.start()
    assert inside.wait(10)
    patch.remove()
    go_on.set()
    thread.join(10)
    assert answers == [7]
    assert follower.calls == [("before", 7)]


def test_a_forked_child_is_not_followed(
    patch: Patch, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert Owner().work(1) == 1
    monkeypatch.undo()
    patch.forget_after_fork()
    assert Owner().work(1) == 1
    assert follower.calls == []
