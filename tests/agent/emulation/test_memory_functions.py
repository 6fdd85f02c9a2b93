"""What a job finds behind PyTorch's own names while the emulation runs."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from vramscope.emulation import Emulation

pytestmark = pytest.mark.torch

Start = Callable[..., "Emulation"]
MIB = 1 << 20

RECORD = "_record_memory_history"


def uint8(size_bytes: int) -> Any:
    return torch.empty(size_bytes, dtype=torch.uint8)


def memory() -> Any:
    return torch.cuda.memory


def needs(name: str, module: Any = torch.cuda.memory) -> None:
    if not hasattr(module, name):
        pytest.skip(f"torch {torch.__version__} has no {name}")


def test_the_counters_of_the_model_are_those_of_the_job(emulate: Start) -> None:
    emulate()
    kept = uint8(30 * MIB)
    uint8(40 * MIB)

    assert torch.cuda.memory_allocated() == kept.nbytes
    assert torch.cuda.max_memory_allocated() == 70 * MIB
    assert torch.cuda.memory_reserved() == torch.cuda.max_memory_reserved() == 70 * MIB
    assert torch.cuda.memory_stats()["num_device_alloc"] == 2
    assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == 70 * MIB
    assert torch.cuda.memory_stats_as_nested_dict()["allocation"]["all"]["allocated"] == 2
    assert torch.cuda.memory.memory_allocated() == kept.nbytes


def test_no_cuda_appears(emulate: Start) -> None:
    emulate()

    assert not torch.cuda.is_available()
    assert not torch.cuda.is_initialized()
    assert torch.cuda.device_count() == 0


@pytest.mark.parametrize("device", [None, 0, "cuda", "cuda:0", "cpu"])
@pytest.mark.parametrize("as_object", [False, True])
def test_every_device_is_the_emulated_one(emulate: Start, device: Any, as_object: bool) -> None:
    emulate(96 * MIB)
    kept = uint8(30 * MIB)
    if as_object:
        device = torch.device("cuda", device) if isinstance(device, int) else device
        device = None if device is None else torch.device(device)

    assert torch.cuda.memory_allocated(device) == kept.nbytes
    assert torch.cuda.max_memory_reserved(device=device) == kept.nbytes
    assert torch.cuda.mem_get_info(device) == (66 * MIB, 96 * MIB)
    torch.cuda.reset_peak_memory_stats(device)
    torch.cuda.reset_accumulated_memory_stats(device)
    torch.cuda.set_per_process_memory_fraction(0.5, device)
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary(device)


def test_peaks_and_totals_start_anew(emulate: Start) -> None:
    emulate()
    kept = uint8(30 * MIB)
    uint8(40 * MIB)

    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()

    assert torch.cuda.max_memory_allocated() == kept.nbytes
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
    with pytest.warns(FutureWarning, match="reset_peak"):
        torch.cuda.reset_max_memory_allocated()


def test_the_cache_is_emptied(emulate: Start) -> None:
    emulate()
    uint8(40 * MIB)
    assert torch.cuda.memory_reserved() == 40 * MIB

    torch.cuda.empty_cache()

    assert torch.cuda.memory_reserved() == 0


def test_the_summary_is_pytorchs_own_and_marked(emulate: Start) -> None:
    emulate()
    kept = uint8(30 * MIB)
    text = torch.cuda.memory_summary()

    assert "device ID 0 (emulated)" in text
    assert len({len(line) for line in text.splitlines()}) == 1
    assert f"{kept.nbytes >> 10} KiB" in text
    assert "from large pool" not in torch.cuda.memory_summary(abbreviated=True)


def test_a_fraction_of_the_device(emulate: Start) -> None:
    emulate(96 * MIB)
    torch.cuda.set_per_process_memory_fraction(0.25)
    if hasattr(torch.cuda, "get_per_process_memory_fraction"):
        assert torch.cuda.get_per_process_memory_fraction() == 0.25

    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"24\.00 MiB allowed; "):
        uint8(30 * MIB)
    with pytest.raises(TypeError, match="must be `float`"):
        torch.cuda.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match=r"Invalid fraction value: 1\.5"):
        torch.cuda.set_per_process_memory_fraction(1.5)


@pytest.mark.filterwarnings("ignore:.*_set_allocator_settings.*:FutureWarning")
def test_options_change_under_either_name(emulate: Start) -> None:
    emulate()
    memory()._set_allocator_settings("expandable_segments:True")
    uint8(30 * MIB)
    assert torch.cuda.memory_stats()["segment.all.current"] == 0

    with pytest.raises((ValueError, RuntimeError), match="parrots"):
        memory()._set_allocator_settings("parrots:3")
    if hasattr(torch._C, "_accelerator_setAllocatorSettings"):
        torch._C._accelerator_setAllocatorSettings("max_split_size_mb:64")
        assert memory()._snapshot()["allocator_settings"]["max_split_size"] == 64 * MIB
    if hasattr(torch._C, "_accelerator_getAllocatorSettings"):
        assert torch._C._accelerator_getAllocatorSettings() == "max_split_size_mb:64"


def test_the_backend_is_the_one_that_is_modelled(emulate: Start) -> None:
    emulate()

    assert torch.cuda.get_allocator_backend() == "native"


def test_a_recorded_history_with_stacks_is_dumped(emulate: Start, tmp_path: Path) -> None:
    emulate()
    memory()._record_memory_history(max_entries=1000)
    assert torch._C._cuda_isHistoryEnabled()
    kept = torch.ones(1000)
    kept + 1
    file = tmp_path / "snapshot.pickle"
    memory()._dump_snapshot(str(file))
    memory()._record_memory_history(enabled=None)

    snapshot = pickle.loads(file.read_bytes())
    (trace,) = snapshot["device_traces"]
    assert [(entry["action"], entry["size"]) for entry in trace] == [
        ("segment_alloc", 2 * MIB),
        ("alloc", 4000),
        ("alloc", 4000),
        ("free_requested", 4000),
        ("free_completed", 4000),
    ]
    assert {entry["frames"][0]["name"] for entry in trace} == {
        "test_a_recorded_history_with_stacks_is_dumped"
    }
    assert not torch._C._cuda_isHistoryEnabled()
    assert memory()._snapshot()["device_traces"] == [[]]


def test_without_context_there_are_no_frames(emulate: Start) -> None:
    emulate()
    memory()._record_memory_history("all", context=None)
    kept = torch.ones(1000)

    snapshot = memory()._snapshot()

    assert all("frames" not in entry for entry in snapshot["device_traces"][0])
    assert torch.cuda.memory_snapshot()[0]["blocks"][0]["frames"] == []
    assert kept.nbytes == torch.cuda.memory_snapshot()[0]["requested_size"]


def test_the_old_form_of_the_history_works(emulate: Start) -> None:
    emulate()
    memory()._record_memory_history(True, trace_alloc_max_entries=2)
    kept = [torch.ones(n) for n in (1, 2, 3)]
    assert len(memory()._snapshot()["device_traces"][0]) == 2
    assert torch.cuda.memory_snapshot()[0]["blocks"][0]["frames"]

    memory()._record_memory_history(False)
    assert memory()._snapshot()["device_traces"] == [[]]
    assert len(kept) == 3


def test_wrong_words_for_the_history_are_refused_as_pytorch_does(emulate: Start) -> None:
    emulate()

    with pytest.raises(RuntimeError, match="expected context to be"):
        memory()._record_memory_history("all", "everything")
    with pytest.raises(TypeError, match="parrots"):
        memory()._record_memory_history("all", parrots=3)
    assert not torch._C._cuda_isHistoryEnabled()


def test_a_snapshot_goes_where_it_cannot_be_written(emulate: Start, tmp_path: Path) -> None:
    emulate()

    with pytest.raises(FileNotFoundError):
        memory()._dump_snapshot(str(tmp_path / "missing" / "snapshot.pickle"))


def test_metadata_marks_the_allocations(emulate: Start) -> None:
    needs("_set_memory_metadata")
    emulate()
    memory()._record_memory_history(context=None)
    memory()._set_memory_metadata("batch 7")
    kept = torch.ones(1000)
    assert memory()._get_memory_metadata() == "batch 7"

    entry = memory()._snapshot()["device_traces"][0][-1]
    assert (entry["user_metadata"], entry["size"]) == ("batch 7", kept.nbytes)


def test_the_segments_have_no_history(emulate: Start) -> None:
    emulate()
    kept = uint8(30 * MIB)

    (segment,) = torch.cuda.memory_snapshot()
    assert segment["total_size"] == kept.nbytes
    assert "page_bytes" not in segment
    if "mempool_id" in inspect.signature(torch.cuda.memory_snapshot).parameters:
        assert torch.cuda.memory_snapshot(mempool_id=(0, 0)) == [segment]
        assert torch.cuda.memory_snapshot(mempool_id=(0, 1)) == []


def test_observers_hear_of_an_error_and_can_look_at_the_device(emulate: Start) -> None:
    emulate(64 * MIB)
    told: list[Any] = []

    def observe(*facts: int) -> None:
        told.append((facts, memory()._snapshot()["segments"][0]["total_size"]))

    torch._C._cuda_attach_out_of_memory_observer(observe)
    kept = uint8(30 * MIB)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        uint8(50 * MIB)

    assert told == [((0, 50 * MIB, 64 * MIB, 34 * MIB), kept.nbytes)]


def test_the_accelerator_functions_answer_too(emulate: Start) -> None:
    needs("accelerator", torch)
    needs("memory_stats", torch.accelerator)
    emulate(96 * MIB)
    kept = uint8(30 * MIB)
    uint8(40 * MIB)

    assert torch.accelerator.memory_allocated() == kept.nbytes
    assert torch.accelerator.max_memory_allocated() == 70 * MIB
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_reserved() == kept.nbytes
    torch.accelerator.reset_accumulated_memory_stats()
    assert torch.accelerator.memory_stats()["allocation.all.allocated"] == 0
    if hasattr(torch.accelerator, "get_memory_info"):
        assert torch.accelerator.get_memory_info() == (66 * MIB, 96 * MIB)
    assert not torch.accelerator.is_available()


def names_of(*modules: Any) -> dict[tuple[str, str], Any]:
    return {
        (module.__name__, name): value for module in modules for name, value in vars(module).items()
    }


def test_the_end_puts_every_name_back(emulate: Start) -> None:
    modules = [torch.cuda, torch.cuda.memory, torch._C]
    if hasattr(torch, "accelerator"):
        modules.append(torch.accelerator)
    before = names_of(*modules)
    emulation = emulate()
    during = names_of(*modules)
    imported = torch.cuda.mem_get_info
    changed = {key for key, value in during.items() if before.get(key) is not value}
    assert ("torch.cuda", "empty_cache") in changed
    assert ("torch.cuda.memory", "_dump_snapshot") in changed
    assert ("torch._C", "_cuda_attach_out_of_memory_observer") in changed

    emulation.stop()

    assert names_of(*modules) == before
    assert torch.cuda.memory_allocated() == 0
    if not torch.cuda.is_available():
        with pytest.raises((AssertionError, RuntimeError)):
            imported()


def test_the_devices_own_answers_come_back_when_the_job_uses_cuda(
    emulate: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda.memory, "empty_cache", lambda: "the device's own")
    emulate()
    assert torch.cuda.memory.empty_cache() is None

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)

    assert torch.cuda.memory.empty_cache() == "the device's own"


def test_a_forked_child_has_pytorchs_own_functions(emulate: Start) -> None:
    emulation = emulate()
    kept = uint8(30 * MIB)
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with emulation._mirror.model():
            held.set()
            forked.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(10)
        try:
            status = 0 if torch.cuda.memory_allocated() == 0 else 2
            torch.cuda.empty_cache()
        finally:
            os._exit(status)
    forked.set()
    thread.join()
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert torch.cuda.memory_allocated() == kept.nbytes


@pytest.mark.expects_guarded_errors
def test_what_fails_on_our_side_is_an_empty_answer(
    emulate: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulation = emulate()

    def fail(*_args: Any, **_options: Any) -> None:
        raise KeyError("ours")

    for name in ("memory_stats", "memory_info", "empty_cache", "snapshot"):
        monkeypatch.setattr(emulation.device, name, fail)

    assert torch.cuda.memory_allocated() == 0
    assert torch.cuda.mem_get_info() == (0, 0)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_summary() == ""
    assert torch.cuda.memory_snapshot() == []
    assert memory()._snapshot()["segments"] == []


def test_a_finalizer_of_the_job_may_call_them_at_any_moment(emulate: Start) -> None:
    import gc

    class Cycle:
        def __init__(self) -> None:
            self.me = self
            self.tensor = torch.ones(100)

        def __del__(self) -> None:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            results.append(torch.cuda.memory_allocated())

    results: list[int] = []
    emulation = emulate()
    memory()._record_memory_history(max_entries=100)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Cycle()
            torch.ones(1 << 18)
    finally:
        gc.set_threshold(*threshold)
    gc.collect()

    assert len(results) == 200
    torch.cuda.empty_cache()
    stats = emulation.device.memory_stats()
    assert stats["allocation"]["all"]["current"] == 0
    assert stats["reserved_bytes"]["all"]["current"] == 0
