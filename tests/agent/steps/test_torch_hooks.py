"""The hooks in the real PyTorch: they call, they survive, and they go without a trace."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vramscope.steps import torch_hooks
from vramscope.steps.torch_hooks import TorchHooks

pytestmark = pytest.mark.torch


@pytest.fixture
def seen() -> list[Any]:
    return []


def make_hooks(on_optimizer_step: Callable[[Any], None]) -> TorchHooks:
    return TorchHooks(on_optimizer_step, lambda iterator: None, lambda iterator, is_over: None)


@pytest.fixture
def hooks(seen: list[Any]) -> Iterator[TorchHooks]:
    hooks = make_hooks(seen.append)
    yield hooks
    hooks.remove()


def an_optimizer() -> Any:
    import torch

    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    return torch.optim.SGD([parameter], lr=0.1)


def loader(batches: int = 3) -> Any:
    import torch

    return torch.utils.data.DataLoader(torch.arange(batches), batch_size=1)


def test_it_calls_with_the_optimizer_that_stepped_also_an_older_one(
    hooks: TorchHooks, seen: list[Any]
) -> None:
    older = an_optimizer()
    hooks.install()
    newer = an_optimizer()
    older.step()
    newer.step()
    assert seen == [older, newer]


def test_installing_and_removing_keeps_nothing_of_the_job_alive(hooks: TorchHooks) -> None:
    """Many jobs switch the garbage collector off: what is in a cycle stays for good."""

    class Batch:
        pass

    def train() -> weakref.ref[Batch]:
        batch = Batch()
        hooks.install()
        hooks.remove()
        return weakref.ref(batch)

    import torch.optim.optimizer  # noqa: F401  # or the hooks would wait for it

    gc.disable()
    try:
        assert train()() is None
    finally:
        gc.enable()


def test_removed_it_leaves_pytorch_as_it_was(hooks: TorchHooks, seen: list[Any]) -> None:
    from torch.optim import optimizer
    from torch.utils.data import dataloader

    before = (
        dict(optimizer._global_optimizer_post_hooks),
        dataloader._BaseDataLoaderIter.__next__,
    )
    hooks.install()
    assert before[1] is not dataloader._BaseDataLoaderIter.__next__
    hooks.remove()
    hooks.poll()
    an_optimizer().step()
    assert seen == []
    assert before == (
        dict(optimizer._global_optimizer_post_hooks),
        dataloader._BaseDataLoaderIter.__next__,
    )


@pytest.mark.expects_guarded_errors
def test_an_error_of_ours_does_not_reach_the_step(hooks: TorchHooks) -> None:
    failing = TorchHooks(
        lambda optimizer: [][0], lambda iterator: [][0], lambda iterator, is_over: [][0]
    )
    failing.install()
    try:
        an_optimizer().step()
        assert len(list(loader())) == 3
    finally:
        failing.remove()


def test_fetches_are_seen_with_their_iterator_and_the_end() -> None:
    fetches: list[Any] = []
    hooks = TorchHooks(
        lambda optimizer: None,
        lambda iterator: fetches.append(iterator),
        lambda iterator, is_over: fetches.append((iterator, is_over)),
    )
    hooks.install()
    try:
        assert hooks.sees_batches
        iterator = iter(loader(1))
        assert list(iterator) == [0]
    finally:
        hooks.remove()
    assert fetches == [iterator, (iterator, False), iterator, (iterator, True)]
    list(loader())
    assert len(fetches) == 4
    assert not hooks.sees_batches


def test_a_data_set_that_raises_does_so_as_without_us(hooks: TorchHooks) -> None:
    """Who reads the traceback looks for the mistake in it. Python 3.10 cannot hide the line."""
    import torch

    class Broken(torch.utils.data.Dataset[int]):  # type: ignore[misc]  # torch is untyped here
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> int:
            raise LookupError("a hole in the data")

    hooks.install()
    with pytest.raises(LookupError, match="a hole in the data") as raised:
        list(torch.utils.data.DataLoader(Broken()))
    if sys.version_info >= (3, 11):
        files = [frame.path for frame in raised.traceback]
        assert not [path for path in files if "vramscope/agent" in str(path)]
        assert not [path for path in files if str(path).endswith("patch.py")]


def test_a_hook_is_never_added_while_pytorch_runs_its_hooks(seen: list[Any]) -> None:
    """Adding one then would raise "mutated during iteration" in the job."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    inside, go_on = threading.Event(), threading.Event()

    def slow_hook_of_the_job(*_: Any) -> None:
        inside.set()
        assert go_on.wait(10)

    handles = [
        register_optimizer_step_post_hook(hook) for hook in (slow_hook_of_the_job, lambda *_: None)
    ]
    optimizer = an_optimizer()
    errors: list[BaseException] = []

    def job() -> None:
        try:
            optimizer.step()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=job)
    hooks = make_hooks(seen.append)
    try:
        thread.start()
        assert inside.wait(10)
        hooks.install()
        hooks.poll()
        go_on.set()
        thread.join(10)
        assert errors == []
        hooks.poll()
        optimizer.step()
        assert seen == [optimizer]
    finally:
        go_on.set()
        hooks.remove()
        for handle in handles:
            handle.remove()


def step_in_another_thread(hook: Callable[..., None]) -> tuple[Any, list[BaseException]]:
    """A thread that steps an optimizer on and on, with a hook of its own in between."""
    errors: list[BaseException] = []
    optimizer = an_optimizer()
    optimizer.register_step_post_hook(hook)

    def job() -> None:
        try:
            optimizer.step()
        except BaseException as error:
            errors.append(error)

    return threading.Thread(target=job), errors


def test_removed_in_mid_step_it_is_gone_and_the_step_goes_on(
    hooks: TorchHooks, seen: list[Any]
) -> None:
    """A detach from outside comes at any moment, and fifty of them must not leave fifty hooks."""
    from torch.optim import optimizer

    inside, go_on = threading.Event(), threading.Event()

    def in_the_middle(*_: Any) -> None:
        inside.set()
        assert go_on.wait(10)

    thread, errors = step_in_another_thread(in_the_middle)
    hooks.install()
    thread.start()
    assert inside.wait(10)
    hooks.remove()
    assert not optimizer._global_optimizer_post_hooks
    go_on.set()
    thread.join(10)
    assert errors == []
    assert seen == []


def test_removed_beside_a_hook_of_the_job_it_waits_for_the_step(
    hooks: TorchHooks, seen: list[Any]
) -> None:
    from torch.optim import optimizer

    inside, go_on = threading.Event(), threading.Event()

    def in_the_middle(*_: Any) -> None:
        inside.set()
        assert go_on.wait(10)

    own = optimizer.register_optimizer_step_post_hook(lambda *_: None)
    thread, errors = step_in_another_thread(in_the_middle)
    hooks.install()
    try:
        thread.start()
        assert inside.wait(10)
        threading.Timer(0.02, go_on.set).start()
        hooks.remove()
        thread.join(10)
        assert list(optimizer._global_optimizer_post_hooks) == [own.id]
        assert errors == []
    finally:
        go_on.set()
        own.remove()
    assert own.id not in optimizer._global_optimizer_post_hooks


def test_hooked_from_two_threads_at_once_it_is_hooked_once(
    hooks: TorchHooks, seen: list[Any]
) -> None:
    from torch.optim import optimizer

    threads = [threading.Thread(target=work) for work in (hooks.install, *[hooks.poll] * 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(optimizer._global_optimizer_post_hooks) == 1


def test_in_a_forked_child_the_hooks_are_idle(
    hooks: TorchHooks, monkeypatch: pytest.MonkeyPatch, seen: list[Any]
) -> None:
    hooks.install()
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    an_optimizer().step()
    list(loader())
    assert seen == []


def test_forgotten_after_a_fork_they_stay_idle_whatever_the_pid(
    hooks: TorchHooks, seen: list[Any]
) -> None:
    hooks.install()
    hooks.forget_after_fork()
    an_optimizer().step()
    list(loader())
    assert seen == []


# PyTorch's own compiler imports what PyTorch itself has deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_step_calls_the_hook_too(hooks: TorchHooks, seen: list[Any]) -> None:
    import torch

    hooks.install()
    optimizer = an_optimizer()

    @torch.compile(backend="eager")  # type: ignore[untyped-decorator]  # torch is untyped here
    def step() -> None:
        optimizer.step()

    for _ in range(3):
        step()
    assert seen == [optimizer] * 3


def test_installed_before_torch_it_sees_the_very_first_step() -> None:
    code = """
import sys
from vramscope.steps import torch_hooks
from vramscope.steps.torch_hooks import TorchHooks
seen = []
TorchHooks(seen.append, seen.append, lambda iterator, is_over: seen.append(is_over)).install()
assert "torch" not in sys.modules
import torch
parameter = torch.nn.Parameter(torch.ones(2))
parameter.grad = torch.ones(2)
torch.optim.SGD([parameter], lr=0.1).step()
list(torch.utils.data.DataLoader(torch.arange(1)))
print(len(seen))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout == "5\n"


def test_no_collection_can_come_while_frames_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    listed = sys._current_frames

    def list_frames() -> Any:
        seen.append(gc.isenabled())
        return listed()

    monkeypatch.setattr(sys, "_current_frames", list_frames)
    assert not torch_hooks._is_stepping()
    assert seen == [False]
    assert gc.isenabled()
