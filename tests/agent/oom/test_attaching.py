from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.notices import Notices
from vramscope.oom import trampoline
from vramscope.oom.attaching import Attaching


class FakeCuda:
    """``torch.cuda`` as far as it comes up, and the part of ``torch._C`` behind it."""

    def __init__(self, *, is_up: bool = False, error: Exception | None = None) -> None:
        self.__spec__ = None
        self.is_up = is_up
        self.error = error
        self.queued: list[Callable[[], None]] = []
        self.attached = 0
        self.has_initialised_it = False

    def is_initialized(self) -> bool:
        return self.is_up

    def _lazy_call(self, call: Callable[[], None]) -> None:
        self.queued.append(call)

    def come_up(self) -> None:
        for call in self.queued:
            call()
        self.is_up = True

    def attach(self, observer: Any) -> None:
        if self.error is not None:
            raise self.error
        # PyTorch sets CUDA up when an observer is attached.
        self.has_initialised_it |= not (self.is_up or self.queued)
        self.attached += 1


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[FakeCuda], Attaching]]:
    monkeypatch.setattr(trampoline, "_is_attached", False)
    started: list[Attaching] = []

    def start(cuda: FakeCuda) -> Attaching:
        c_module = SimpleNamespace(
            _cuda_attach_out_of_memory_observer=cuda.attach, _cuda_memoryStats=dict
        )
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, _C=c_module))
        monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
        attaching = Attaching(Notices(), emulated=False)
        started.append(attaching)
        attaching.install()
        return attaching

    yield start
    for each in started:
        each.remove()


def test_it_never_sets_cuda_up_and_is_there_before_the_first_tensor(
    install: Callable[[FakeCuda], Attaching],
) -> None:
    cuda = FakeCuda()
    attaching = install(cuda)
    attaching.at_boundary()
    assert (cuda.attached, attaching.is_attached) == (0, False)
    cuda.come_up()
    assert (cuda.attached, attaching.is_attached) == (1, True)
    assert not cuda.has_initialised_it
    attaching.at_boundary()
    assert cuda.attached == 1


def test_in_a_job_that_uses_cuda_already_it_waits_for_a_step_end(
    install: Callable[[FakeCuda], Attaching],
) -> None:
    cuda = FakeCuda(is_up=True)
    attaching = install(cuda)
    assert cuda.attached == 0
    attaching.at_boundary()
    attaching.at_boundary()
    assert (cuda.attached, attaching.is_attached) == (1, True)
    # A second agent of the same process finds it there.
    again = install(cuda)
    again.at_boundary()
    assert (cuda.attached, again.is_attached) == (1, True)


def test_what_an_allocator_refuses_is_noted_and_the_job_goes_on(
    install: Callable[[FakeCuda], Attaching],
) -> None:
    cuda = FakeCuda(error=RuntimeError("cudaMallocAsync does not yet support this"))
    attaching = install(cuda)
    cuda.come_up()
    assert not attaching.is_attached
    (note,) = attaching.__dict__["_notices"].texts()
    assert "cudaMallocAsync" in note


def test_removed_or_in_a_forked_child_nothing_is_attached_any_more(
    install: Callable[[FakeCuda], Attaching],
) -> None:
    for end in (Attaching.remove, Attaching.forget_after_fork):
        cuda = FakeCuda()
        end(install(cuda))
        cuda.come_up()
        assert cuda.attached == 0


def test_before_torch_is_there_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.cuda", raising=False)
    attaching = Attaching(Notices(), emulated=False)
    attaching.install()
    attaching.at_boundary()
    assert not attaching.is_attached
    attaching.remove()
