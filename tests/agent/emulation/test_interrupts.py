from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from vramscope.emulation.interrupts import HeldInterrupts

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An interpreter with a prompt, which goes on after Ctrl-C."""
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def held() -> HeldInterrupts:
    from vramscope.emulation.interrupts import HeldInterrupts

    return HeldInterrupts()


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_waits_for_the_end(held: HeldInterrupts) -> None:
    done: list[str] = []

    def work() -> None:
        with held:
            press_ctrl_c()
            with held:
                press_ctrl_c()
            done.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the rest"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with held:
        pass  # what came has been delivered, once


def test_without_one_nothing_is_raised_and_nothing_stays(held: HeldInterrupts) -> None:
    with held, held:
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_gets_out(held: HeldInterrupts) -> None:
    with pytest.raises(ValueError, match="ours"), held:
        raise ValueError("ours")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_job_that_ignores_interrupts_goes_on_to(held: HeldInterrupts) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with held:
        press_ctrl_c()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_another_thread_does_not_touch_the_handler(held: HeldInterrupts) -> None:
    seen: list[Any] = []

    def hold() -> None:
        with held:
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join(10)
    assert seen == [signal.default_int_handler]


def test_a_program_pays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from vramscope.emulation.interrupts import interrupts_held

    monkeypatch.delattr(sys, "ps1")
    held = interrupts_held()
    with held, pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def test_the_model_is_whole_after_an_interrupt_in_its_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from vramscope.emulation.storages import StorageMirror
    from vramscope_analysis.allocator import CachingAllocator
    from vramscope_analysis.allocator.free_blocks import FreeBlocks

    remove = FreeBlocks.remove

    def interrupted(self: FreeBlocks, block: Any) -> None:
        press_ctrl_c()
        remove(self, block)

    mirror = StorageMirror(CachingAllocator(64 << 20))
    mirror.see((torch.ones(10),), {}, None)
    kept = torch.ones(20)
    with monkeypatch.context() as patch:
        patch.setattr(FreeBlocks, "remove", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mirror.see((kept,), {}, None)
    del kept
    with mirror.model() as model:
        counts = model.memory_stats()
        assert (counts["allocation"]["all"]["current"], counts["active"]["all"]["current"]) == (
            0,
            0,
        )
        model.empty_cache()
        assert model.memory_stats()["reserved_bytes"]["all"]["current"] == 0
