"""Backward passes of the training thread are told, once each, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.job_process import child_environment
from vramscope.steps.backward_hook import BackwardHook

pytestmark = pytest.mark.torch


class Rig:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.is_training_thread = True
        self.hook = BackwardHook(
            lambda: self.is_training_thread,
            lambda: self.told.append("begin"),
            lambda: self.told.append("end"),
        )


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    rig.hook.install()
    yield rig
    rig.hook.remove()


def weight() -> Any:
    import torch

    return torch.nn.Parameter(torch.ones(3))


def test_every_way_to_run_a_backward_is_told(rig: Rig) -> None:
    import torch

    parameter = weight()
    parameter.sum().backward()
    torch.autograd.backward(parameter.sum())
    torch.autograd.backward([parameter.sum(), (2 * parameter).sum()])
    parameter.sum().backward(inputs=[parameter])
    assert rig.told == ["begin", "end"] * 4


def test_a_pass_that_nobody_wants_is_not_told_nor_what_runs_inside_it(rig: Rig) -> None:
    import torch

    outer, inner = weight(), weight()
    asked: list[bool] = []

    def is_wanted() -> bool:
        asked.append(len(asked) != 0)
        return asked[-1]

    rig.hook._is_wanted = is_wanted

    def within(gradient: Any) -> None:
        del gradient
        with torch.enable_grad():
            inner.sum().backward()

    total = outer.sum()
    total.register_hook(within)
    total.backward()  # not wanted; that inside it would be
    assert rig.told == []
    assert inner.grad is not None
    outer.sum().backward()
    assert rig.told == ["begin", "end"]


def test_a_pass_that_is_wanted_ends_after_those_inside_it(rig: Rig) -> None:
    import torch

    outer, inner = weight(), weight()
    wanted = [True, False]
    rig.hook._is_wanted = lambda: wanted.pop(0)
    told_within: list[str] = []

    def within(gradient: Any) -> None:
        del gradient
        with torch.enable_grad():
            inner.sum().backward()
        told_within.extend(rig.told)

    total = outer.sum()
    total.register_hook(within)
    total.backward()
    assert told_within == ["begin"]
    assert rig.told == ["begin", "end"]


def test_asking_for_gradients_is_no_backward(rig: Rig) -> None:
    import torch

    parameter = weight()
    torch.autograd.grad(parameter.sum(), parameter)
    assert rig.told == []


def test_a_backward_that_raises_is_over(rig: Rig) -> None:
    parameter = weight()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        parameter.backward()
    parameter.sum().backward()
    assert rig.told == ["begin", "end"] * 2


def test_a_pass_inside_a_pass_is_part_of_it(rig: Rig) -> None:
    import torch

    parameter, other = weight(), weight()

    def within(grad: Any) -> None:
        with torch.enable_grad():
            other.sum().backward()

    loss = parameter.sum()
    loss.register_hook(within)
    loss.backward()
    assert other.grad is not None
    assert rig.told == ["begin", "end"]


def test_reentrant_checkpoints_are_part_of_their_pass(rig: Rig) -> None:
    from torch.utils.checkpoint import checkpoint

    parameter = weight()
    checkpoint(lambda p: (p * 2).sum(), parameter, use_reentrant=True).backward()
    assert rig.told == ["begin", "end"]


def test_other_threads_are_not_told(rig: Rig) -> None:
    rig.is_training_thread = False
    thread = threading.Thread(target=lambda: weight().sum().backward())
    thread.start()
    thread.join(30)
    rig.is_training_thread = True
    assert rig.told == []
    weight().sum().backward()
    assert rig.told == ["begin", "end"]


def test_what_is_being_traced_is_not_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    weight().sum().backward()
    assert rig.told == []


def test_a_compiled_model_is_told_like_any_other(rig: Rig) -> None:
    import torch

    model = torch.compile(torch.nn.Linear(3, 3), backend="aot_eager")
    for _ in range(2):
        model(torch.ones(2, 3)).sum().backward()
    assert rig.told == ["begin", "end"] * 2


def test_what_a_listener_raises_stays_with_us(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    from vramscope import guard

    swallowed: list[str] = []
    monkeypatch.setattr(guard, "_hook", lambda where, error: swallowed.append(where))
    counts = dict(guard._counts)

    def fail() -> None:
        raise RuntimeError("ours")

    rig.hook._on_begin = fail
    parameter = weight()
    parameter.sum().backward()
    assert parameter.grad is not None
    assert swallowed == ["backward hook"]
    guard._counts.clear()
    guard._counts.update(counts)


def test_it_leaves_pytorch_as_it_was() -> None:
    import torch

    original = torch.autograd.backward
    rig = Rig()
    rig.hook.install()
    assert torch.autograd.backward is not original
    rig.hook.remove()
    assert torch.autograd.backward is original
    rig.hook.remove()


def test_a_forked_child_is_not_followed(rig: Rig) -> None:
    pid = os.fork()
    if pid == 0:
        rig.hook.forget_after_fork()
        weight().sum().backward()
        os._exit(len(rig.told))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_torch_may_come_later() -> None:
    code = """
from vramscope.steps.backward_hook import BackwardHook
told = []
hook = BackwardHook(lambda: True, lambda: told.append(1), lambda: told.append(2))
hook.install()
import torch
torch.ones(2, requires_grad=True).sum().backward()
hook.remove()
torch.ones(2, requires_grad=True).sum().backward()
assert told == [1, 2], told
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=child_environment(), timeout=120)
