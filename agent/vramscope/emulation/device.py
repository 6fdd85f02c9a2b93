"""The emulated device: what the agent and the job's own memory functions ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import structs

from vramscope.devices.device import DeviceMemory
from vramscope.emulation.allocator_settings import CurrentSettings, EmulatedControl
from vramscope.emulation.history import Context, History, HistoryRequest
from vramscope.emulation.snapshot import fill_in_frames, plain_snapshot
from vramscope.emulation.stacks import FrameLists
from vramscope.emulation.storages import StorageMirror
from vramscope.peaks.user_peaks import UserPeaks
from vramscope_analysis.allocator import CachingAllocator, memory_summary
from vramscope_protocol.messages import DeviceInfo

_SMALL_PAGE_BYTES: Final = 2 << 20


class EmulatedDevice:
    """Answers from the allocator model. Implements ``Device``; every thread may call everything.

    Args:
        mirror: holds the model.
        history: takes the model's events while it records.
        settings: the allocator's options.
        info: name and size.
        version: torch release that is followed.
        on_change: told, on the thread that reads ``device_memory``, when the job caps itself.
    """

    def __init__(
        self,
        mirror: StorageMirror,
        history: History,
        settings: CurrentSettings,
        info: DeviceInfo,
        version: tuple[int, int],
        on_change: Callable[[DeviceInfo], None] | None = None,
    ) -> None:
        self._mirror = mirror
        self._history = history
        self._settings = settings
        self._version = version
        self._on_change = on_change
        self._info = info
        self._capacity_bytes: int = info.total_bytes or 0
        self.memory_fraction = 1.0
        """What the job may have of the device, as it was set last."""
        self._note_fraction(settings.values.per_process_memory_fraction)
        self._told = self._info
        self.peaks = UserPeaks(
            self._real_stats,
            lambda: mirror.change(CachingAllocator.reset_peaks),
            lambda: mirror.change(CachingAllocator.reset_accumulated),
        )
        """The job's view of the peaks, while the real ones are reset at the end of each step."""

    @property
    def info(self) -> DeviceInfo:
        """Name and size."""
        return self._info

    def memory_stats(self) -> Mapping[str, Any]:
        """Counters in the nested form of ``torch._C._cuda_memoryStats``, as the job sees them."""
        return self.peaks.view()

    def device_memory(self) -> DeviceMemory:
        """Totals. Only what the allocator holds is in use: no context is made up."""
        info = self._info
        if info != self._told:
            self._told = info
            if self._on_change is not None:
                self._on_change(info)
        free_bytes, total_bytes = self.memory_info()
        return DeviceMemory(
            total_bytes=total_bytes, used_bytes=total_bytes - free_bytes, free_bytes=free_bytes
        )

    def memory_info(self) -> tuple[int, int]:
        """Bytes free and in all (``cudaMemGetInfo``)."""
        with self._mirror.model() as model:
            return self._capacity_bytes - model.reserved_bytes, self._capacity_bytes

    def busy_reason(self) -> str | None:
        """Always ``None``: nothing captures here."""
        return None

    def segments(self) -> list[dict[str, Any]]:
        """Segments with their blocks; expandable ones with their ``page_bytes``.

        Blocks have their stacks where a history was recorded when they were allocated.
        """
        with self._mirror.model() as model:
            segments = model.segments()
            stacks = self._history.recorded(include_traces=False)
        if stacks.block_stacks:
            fill_in_frames(segments, stacks, FrameLists())
        for segment in segments:
            if segment["is_expandable"]:
                small = segment["segment_type"] == "small"
                large_page_bytes = self._settings.values.large_segment_bytes
                segment["page_bytes"] = _SMALL_PAGE_BYTES if small else large_page_bytes
        return segments

    def why_no_segments(self) -> str | None:
        """Always ``None``: the model tells its segments at any time."""
        return None

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage; ``None`` if no operation has used it yet."""
        return self._mirror.place_of(tensor)

    def memory_summary(self) -> str:
        """The counters as a table."""
        return memory_summary(self.memory_stats(), "0 (emulated)")

    # ---------------------------------------------------------------------- what changes it

    def empty_cache(self) -> None:
        """Give unused segments back."""
        self._mirror.change(CachingAllocator.empty_cache)

    def reset_peaks(self) -> None:
        """Set every peak counter to its current value."""
        self.peaks.reset()

    def reset_accumulated(self) -> None:
        """Set the totals to 0 (``resetAccumulatedStats``)."""
        self.peaks.reset_accumulated()

    def set_memory_fraction(self, fraction: float) -> None:
        """Cap what the job may have (``setMemoryFraction``)."""
        self._mirror.change(lambda model: model.set_memory_fraction(fraction))
        self._note_fraction(fraction)

    def change_settings(self, text: str) -> None:
        """Follow ``_set_allocator_settings``.

        Raises:
            Exception: the text is not understood; as torch raises it.
        """
        try:
            self._settings.change(text)
        finally:
            values = self._settings.values
            self._mirror.change(lambda model: model.set_settings(values))

    def allocator_control(self) -> EmulatedControl:
        """What commands set the model through."""
        return EmulatedControl(self, self._settings, self._version)

    def allocator_settings(self) -> str:
        """The options that were set last."""
        return self._settings.text

    # ------------------------------------------------------------------------- its history

    @property
    def metadata(self) -> str:
        """Words that the allocations of this thread are marked with in the history."""
        return self._history.metadata.text

    @metadata.setter
    def metadata(self, text: str) -> None:
        self._history.metadata.text = text

    @property
    def is_recording(self) -> bool:
        """Whether a history is recorded."""
        return self._history.is_recording

    def record_history(self, request: HistoryRequest) -> None:
        """Record from now on."""

        def start(model: CachingAllocator) -> None:
            self._history.start(request)
            self._mirror.gather_deaths(request.context is Context.ALL)
            model.on_event = self._history.event

        self._mirror.change(start)

    def stop_history(self) -> None:
        """Record nothing more and forget what was recorded."""

        def stop(model: CachingAllocator) -> None:
            model.on_event = None
            self._mirror.gather_deaths(False)
            self._history.stop()

        self._mirror.change(stop)

    def snapshot(self, *, include_traces: bool = True) -> dict[str, Any]:
        """Segments, history and options as ``torch.cuda.memory._snapshot()`` returns them."""
        with self._mirror.model() as model:
            segments = model.segments()
            recorded = self._history.recorded(include_traces=include_traces)
            active_bytes = model.counters.all.active_bytes.current
            # For the next snapshot: where in its history this one was taken.
            self._history.event("snapshot", 0, active_bytes, 0, (0, 0))
        # The long part, without the lock: the model is copied.
        return plain_snapshot(segments, recorded, self._settings.plain(), self._version)

    def _real_stats(self) -> Mapping[str, Any]:
        with self._mirror.model() as model:
            return model.memory_stats()

    def _note_fraction(self, fraction: float) -> None:
        self.memory_fraction = fraction
        limit_bytes = int(fraction * self._capacity_bytes) if fraction < 1.0 else None
        self._info = structs.replace(self._info, limit_bytes=limit_bytes)
