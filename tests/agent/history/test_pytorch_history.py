"""PyTorch is asked in the words of its own release, and never for stacks of C++."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.fake_torch import FakeTorch, install_fake_torch
from vramscope.history.pytorch_history import HistoryMode, PytorchHistory, counts
from vramscope_protocol.errors import CONFLICT, VramscopeError


class Recorder:
    """The part of ``torch.cuda.memory`` that records, as one release has it."""

    def __init__(self, fake: FakeTorch) -> None:
        self.calls: list[dict[str, Any]] = []
        self.is_recording = False
        memory: Any = fake.modules["torch.cuda.memory"]
        memory._record_memory_history = self._since_2_8 if fake.version >= (2, 8) else self._old
        memory._snapshot = lambda: {
            "segments": [{"device": 1, "blocks": [{}, {}]}],
            "device_traces": [[{}], [{}, {}]],
            "external_annotations": [{}],
        }
        fake.modules["torch"]._C._cuda_isHistoryEnabled = lambda: self.is_recording

    def _old(
        self, enabled: Any, context: Any = "all", stacks: Any = "all", max_entries: int = 1 << 63
    ) -> None:
        self._call(enabled, context=context, stacks=stacks, max_entries=max_entries)

    def _since_2_8(
        self,
        enabled: Any,
        context: Any = "all",
        stacks: Any = "all",
        max_entries: int = 1 << 63,
        clear_history: bool = False,
        global_record_annotations: bool = False,
    ) -> None:
        self._call(
            enabled,
            context=context,
            stacks=stacks,
            max_entries=max_entries,
            clear_history=clear_history,
            global_record_annotations=global_record_annotations,
        )

    def _call(self, enabled: Any, **options: Any) -> None:
        self.calls.append({"enabled": enabled, **options})
        self.is_recording = enabled is not None


def set_up(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int] = (2, 13)
) -> tuple[FakeTorch, Recorder, PytorchHistory]:
    fake = install_fake_torch(monkeypatch, version)
    return fake, Recorder(fake), PytorchHistory(emulated=False)


@pytest.mark.parametrize(
    ("mode", "stacks", "expected"),
    [
        ("state", True, ("state", "state", 1)),
        ("alloc", True, ("all", "alloc", 500)),
        ("alloc", False, ("all", None, 500)),
        ("all", True, ("all", "all", 500)),
    ],
)
@pytest.mark.parametrize("version", [(2, 4), (2, 7), (2, 8), (2, 13)])
def test_each_mode_in_the_words_of_each_release(
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, int],
    mode: HistoryMode,
    stacks: bool,
    expected: tuple[Any, ...],
) -> None:
    _, recorder, history = set_up(monkeypatch, version)
    assert not history.is_recording()
    history.start(mode, stacks=stacks, max_entries=500)
    assert history.is_recording()
    (call,) = recorder.calls
    assert (call["enabled"], call["context"], call["max_entries"]) == expected
    assert call["stacks"] == "python"
    if version >= (2, 8):
        assert call["clear_history"] is True
        assert call["global_record_annotations"] is True
    history.stop()
    assert recorder.calls[-1]["enabled"] is None
    assert not history.is_recording()


def test_a_process_without_the_device_is_never_made_to_have_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake, recorder, history = set_up(monkeypatch)
    fake.initialized = False
    assert not history.is_recording()
    for ask in (
        lambda: history.start("all", stacks=True, max_entries=5),
        lambda: history.snapshot(traces=False),
    ):
        with pytest.raises(VramscopeError, match="has not used the device yet") as error:
            ask()
        assert error.value.code == CONFLICT
    history.stop()
    assert recorder.calls == []


@pytest.mark.parametrize("version", [(2, 4), (2, 8), (2, 11)])
def test_without_traces_only_segments_are_taken(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]
) -> None:
    fake, _, history = set_up(monkeypatch, version)
    fake.segments = [{"device": 2, "blocks": [{}]}]
    snapshot = history.snapshot(traces=False)
    assert snapshot["segments"] == fake.segments
    assert snapshot["device_traces"] == [[], [], []]
    assert counts(snapshot) == {"segments": 1, "blocks": 1, "entries": 0}


def test_with_traces_it_is_pytorchs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, history = set_up(monkeypatch)
    snapshot = history.snapshot(traces=True)
    assert counts(snapshot) == {"segments": 1, "blocks": 2, "entries": 3}
    assert snapshot["external_annotations"] == [{}]


@pytest.mark.parametrize("is_on", [True, False])
def test_while_the_snapshot_is_made_python_collects_no_garbage(
    monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    fake, _, history = set_up(monkeypatch)
    seen: list[bool] = []
    memory: Any = fake.modules["torch.cuda.memory"]

    def fail() -> None:
        seen.append(gc.isenabled())
        raise RuntimeError("out of luck")

    memory._snapshot = fail
    before = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        with pytest.raises(RuntimeError, match="out of luck"):
            history.snapshot(traces=True)
        assert (seen, gc.isenabled()) == ([False], is_on)
    finally:
        (gc.enable if before else gc.disable)()


def test_our_own_call_is_known_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, _, history = set_up(monkeypatch)
    seen: list[bool] = []
    memory: Any = fake.modules["torch.cuda.memory"]
    memory._record_memory_history = lambda *args, **options: seen.append(history.is_calling)
    history.start("all", stacks=True, max_entries=5)
    history.stop()
    assert seen == [True, True]
    assert not history.is_calling


@pytest.mark.torch
def test_on_an_emulated_device_it_records_what_the_job_does(
    emulate: Callable[..., Any],
) -> None:
    torch = pytest.importorskip("torch")
    emulate()
    history = PytorchHistory(emulated=True)
    history.start("all", stacks=True, max_entries=100)
    kept = torch.ones(1 << 18)
    with_history = history.snapshot(traces=True)
    assert "alloc" in {entry["action"] for entry in with_history["device_traces"][0]}
    assert history.snapshot(traces=False)["device_traces"] == [[]]
    history.stop()
    assert not history.is_recording()
    assert kept.numel() == 1 << 18


def test_an_interrupt_before_a_snapshot_leaves_garbage_collection_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = install_fake_torch(monkeypatch)
    Recorder(fake)
    disable = gc.disable

    def interrupted() -> None:
        disable()
        raise KeyboardInterrupt

    monkeypatch.setattr(gc, "disable", interrupted)
    before = gc.isenabled()
    gc.enable()
    try:
        with pytest.raises(KeyboardInterrupt):
            PytorchHistory(emulated=True).snapshot(traces=True)
        assert gc.isenabled()
    finally:
        (gc.enable if before else disable)()
