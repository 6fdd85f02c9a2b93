from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.oom import trampoline


class CModule:
    """What stands for ``torch._C``."""

    def __init__(self) -> None:
        self.observers: list[Any] = []

    def _cuda_attach_out_of_memory_observer(self, observer: Any) -> None:
        self.observers.append(observer)

    def run_out(self) -> None:
        for observer in self.observers:
            observer(1, 20, 300, 4)


@pytest.fixture
def torch_c(monkeypatch: pytest.MonkeyPatch) -> Iterator[CModule]:
    monkeypatch.setattr(trampoline, "_is_attached", False)
    yield CModule()
    trampoline.switch_off()


def test_it_is_attached_once_for_the_life_of_the_process(torch_c: CModule) -> None:
    assert trampoline.attach(torch_c, emulated=False)
    assert trampoline.attach(torch_c, emulated=False)
    assert trampoline.is_attached()
    assert len(torch_c.observers) == 1


def test_an_emulated_device_begins_anew_each_time(torch_c: CModule) -> None:
    trampoline.attach(torch_c, emulated=True)
    trampoline.attach(torch_c, emulated=True)
    assert len(torch_c.observers) == 2
    assert not trampoline.is_attached()


def test_a_torch_without_observers_has_none() -> None:
    assert not trampoline.attach(object(), emulated=False)


def test_it_calls_who_is_switched_on_and_nobody_afterwards(torch_c: CModule) -> None:
    taken: list[tuple[int, ...]] = []

    def take(*numbers: int) -> None:
        taken.append(numbers)

    trampoline.attach(torch_c, emulated=False)
    torch_c.run_out()
    trampoline.switch_on(take)
    torch_c.run_out()
    trampoline.switch_off(print)
    torch_c.run_out()
    assert taken == [(1, 20, 300, 4)] * 2
    trampoline.switch_off(take)
    torch_c.run_out()
    assert len(taken) == 2


@pytest.mark.expects_guarded_errors
def test_nothing_of_ours_takes_the_place_of_pytorchs_error(torch_c: CModule) -> None:
    def take(*numbers: int) -> None:
        raise MemoryError(f"no more: {numbers}")

    trampoline.attach(torch_c, emulated=False)
    trampoline.switch_on(take)
    torch_c.run_out()
    torch_c.run_out()


def test_running_out_inside_is_not_told_again(torch_c: CModule) -> None:
    taken: list[int] = []

    def take(device: int, *numbers: int) -> None:
        taken.append(device)
        torch_c.run_out()

    trampoline.attach(torch_c, emulated=False)
    trampoline.switch_on(take)
    torch_c.run_out()
    assert taken == [1]
    # On another thread at the same time it is.
    thread = threading.Thread(target=torch_c.run_out)
    thread.start()
    thread.join()
    assert taken == [1, 1]


def test_a_forked_child_and_a_closing_interpreter_do_nothing(
    torch_c: CModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    trampoline.attach(torch_c, emulated=False)
    trampoline.switch_on(lambda *numbers: taken.append(1))
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    torch_c.run_out()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    torch_c.run_out()
    assert taken == []


def test_ctrl_c_in_the_middle_goes_on_to_the_job(torch_c: CModule) -> None:
    def take(*numbers: int) -> None:
        raise KeyboardInterrupt

    trampoline.attach(torch_c, emulated=False)
    trampoline.switch_on(take)
    with pytest.raises(KeyboardInterrupt):
        torch_c.run_out()
    taken: list[int] = []
    trampoline.switch_on(lambda *numbers: taken.append(1))
    torch_c.run_out()
    assert taken == [1]
