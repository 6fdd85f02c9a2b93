"""PyTorch's memory functions, answered by the emulated device.

Only the lowest ones are replaced: ``memory_allocated``, ``max_memory_reserved``, ``memory_stats``
and the like are made of them in PyTorch's own code, in every release. Whatever device a call
names means the emulated one, ``"cpu"`` included: that is where its tensors are.
"""

# pyright: reportPrivateUsage=false
# Most of what has to do with the history has no public name in PyTorch.

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import torch

from vramscope.emulation.device import EmulatedDevice
from vramscope.emulation.history_request import read_request
from vramscope.emulation.out_of_memory import Observer, OutOfMemory
from vramscope.emulation.snapshot import dump_snapshot
from vramscope.emulation.torch_names import TorchNames
from vramscope.guard import guarded

T = TypeVar("T")

_TITLE: Final = "device ID 0           "
_MARKED_TITLE: Final = "device ID 0 (emulated)"


class MemoryFunctions:
    """What the job's calls of ``torch.cuda`` and ``torch.cuda.memory`` do during an emulation.

    What PyTorch would raise for a wrong argument is raised; what fails on our side is reported,
    and the job gets an empty answer.

    Args:
        device: answers.
        out_of_memory: takes the job's observers.
        is_open: whether the emulation runs in this process.
    """

    def __init__(
        self, device: EmulatedDevice, out_of_memory: OutOfMemory, is_open: Callable[[], bool]
    ) -> None:
        self._device = device
        self._out_of_memory = out_of_memory
        self._is_open = is_open
        self._names = TorchNames(self._is_ours)
        self._memory: Any = torch.cuda.memory
        self._summary: Any = self._memory.memory_summary
        self._record: Any = self._memory._record_memory_history

    def install(self) -> None:
        """Replace the functions that this torch has."""
        functions: dict[str, Callable[..., Any]] = {
            "memory_stats_as_nested_dict": self._nested_stats,
            "memory_summary": self._memory_summary,
            "memory_snapshot": self._memory_snapshot,
            "mem_get_info": self._mem_get_info,
            "empty_cache": self._empty_cache,
            "reset_peak_memory_stats": self._reset_peaks,
            "reset_accumulated_memory_stats": self._reset_accumulated,
            "set_per_process_memory_fraction": self._set_fraction,
            "get_per_process_memory_fraction": self._get_fraction,
            "get_allocator_backend": self._backend,
            "_set_allocator_settings": self._set_settings,
            "_record_memory_history": self._record_history,
            "_snapshot": self._snapshot,
            "_dump_snapshot": self._dump,
            "_set_memory_metadata": self._set_metadata,
            "_get_memory_metadata": self._get_metadata,
            "_memory_metadata_supported": lambda: True,
        }
        for name, function in functions.items():
            for module in (torch.cuda.memory, torch.cuda):
                self._names.replace(module, name, function)
        self._install_accelerator()
        self._names.add(torch._C, "_cuda_attach_out_of_memory_observer", self._attach_observer)
        self._names.add(torch._C, "_cuda_isHistoryEnabled", self._is_recording)
        self._names.replace(torch._C, "_accelerator_setAllocatorSettings", self._set_settings)
        self._names.replace(torch._C, "_accelerator_getAllocatorSettings", self._get_settings)

    def remove(self) -> None:
        """Put PyTorch's own functions back."""
        self._names.restore()

    def _install_accelerator(self) -> None:
        accelerator: Any = getattr(torch, "accelerator", None)
        memory: Any = sys.modules.get("torch.accelerator.memory")
        if accelerator is None or memory is None:
            return  # before torch 2.9
        for name, function in (
            ("memory_stats", self._flat_stats),
            ("get_memory_info", self._mem_get_info),
            ("empty_cache", self._empty_cache),
            ("reset_peak_memory_stats", self._reset_peaks),
            ("reset_accumulated_memory_stats", self._reset_accumulated),
        ):
            self._names.replace(memory, name, function)
            self._names.replace(accelerator, name, function)

    def _is_ours(self) -> bool:
        # Once the job uses a device that is there, it gets that device's answers.
        return self._is_open() and not torch.cuda.is_initialized()

    # ---------------------------------------------------------------------------- counters

    def _nested_stats(self, device: Any = None) -> Mapping[str, Any]:
        del device
        nothing: Mapping[str, Any] = {}
        return _ask(self._device.memory_stats, nothing)

    def _flat_stats(self, device: Any = None, /) -> Any:
        return self._memory.memory_stats(device)

    def _memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        del device
        text: str = _ask(lambda: self._summary(0, abbreviated), "")
        return text.replace(_TITLE, _MARKED_TITLE, 1)

    def _mem_get_info(self, device: Any = None) -> tuple[int, int]:
        del device
        return _ask(self._device.memory_info, (0, 0))

    def _reset_peaks(self, device: Any = None) -> None:
        del device
        _ask(self._device.reset_peaks, None)

    def _reset_accumulated(self, device: Any = None) -> None:
        del device
        _ask(self._device.reset_accumulated, None)

    # ------------------------------------------------------------------ cache, limit, options

    def _empty_cache(self) -> None:
        _ask(self._device.empty_cache, None)

    def _set_fraction(self, fraction: Any, device: Any = None) -> None:
        del device
        if not isinstance(fraction, float):
            raise TypeError("Invalid type for fraction argument, must be `float`")
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        _ask(lambda: self._device.set_memory_fraction(fraction), None)

    def _get_fraction(self, device: Any = None) -> float:
        del device
        return self._device.memory_fraction

    def _backend(self) -> str:
        return "native"

    def _set_settings(self, env: str) -> None:
        self._device.change_settings(env)

    def _get_settings(self) -> str:
        return self._device.allocator_settings()

    # ---------------------------------------------------------------- history and snapshots

    def _record_history(self, enabled: Any = "all", *args: Any, **options: Any) -> None:
        function = self._record
        if isinstance(enabled, bool):
            function = self._memory._record_memory_history_legacy
        bound = inspect.signature(function).bind(enabled, *args, **options)
        bound.apply_defaults()
        if not bound.arguments.get("record_cuda", True):
            return  # 2.14 can record host memory alone
        request = read_request(bound.arguments)
        if request is None:
            _ask(self._device.stop_history, None)
        else:
            _ask(lambda: self._device.record_history(request), None)

    def _is_recording(self) -> bool:
        return self._device.is_recording

    def _snapshot(self, device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
        del device
        empty: dict[str, Any] = {"segments": [], "device_traces": [[]], "allocator_settings": {}}
        snapshot = _ask(self._device.snapshot, empty)
        if augment_with_fx_traces:
            snapshot = self._memory._augment_memory_snapshot_stack_traces(snapshot)
        return snapshot

    def _memory_snapshot(self, mempool_id: Any = None, include_traces: bool = True) -> Any:
        del include_traces  # they do not show in the segments
        segments: list[dict[str, Any]] = []
        segments = _ask(lambda: self._device.snapshot(include_traces=False)["segments"], segments)
        if mempool_id is None:
            return segments
        return [each for each in segments if each["segment_pool_id"] == tuple(mempool_id)]

    def _dump(
        self, filename: Any = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
    ) -> None:
        snapshot = self._snapshot(None, augment_with_fx_traces)
        with open(filename, "wb") as file:
            dump_snapshot(snapshot, file)

    def _set_metadata(self, metadata: str) -> None:
        self._device.metadata = metadata

    def _get_metadata(self) -> str:
        return self._device.metadata

    # --------------------------------------------------------------------------------- OOM

    def _attach_observer(self, observer: Observer) -> None:
        self._out_of_memory.attach(observer)


def _ask(question: Callable[[], T], fallback: T) -> T:
    with guarded("emulation"):
        return question()
    return fallback  # pyright: ignore[reportUnreachable]  # the guard swallows
