"""A device whose counters and answers the test sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.fake_torch import nested_stats
from vramscope.devices.device import DeviceMemory
from vramscope_protocol.messages import DeviceInfo


class FakeDevice:
    """Implements ``Device``; notes which methods were called."""

    def __init__(self) -> None:
        self.stats: Mapping[str, Any] | None = nested_stats()
        self.memory = DeviceMemory(total_bytes=1000, used_bytes=400, free_bytes=600)
        self.reason: str | None = None
        self.no_segments_because: str | None = None
        self.segment_list: list[dict[str, Any]] = []
        self.stats_after_empty_cache: Mapping[str, Any] | None = None
        self.error: BaseException | None = None
        self.calls: list[str] = []

    @property
    def info(self) -> DeviceInfo:
        return DeviceInfo(index=0, name="fake", total_bytes=1000)

    def memory_stats(self) -> Mapping[str, Any] | None:
        return self.stats

    def device_memory(self) -> DeviceMemory:
        return self.memory

    def busy_reason(self) -> str | None:
        return self.reason

    def segments(self) -> list[dict[str, Any]]:
        return self.segment_list

    def why_no_segments(self) -> str | None:
        return self.no_segments_because

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()

    def empty_cache(self) -> None:
        self.calls.append("empty_cache")
        if self.error is not None:
            raise self.error
        if self.stats_after_empty_cache is not None:
            self.stats = self.stats_after_empty_cache

    def reset_peaks(self) -> None:
        self.calls.append("reset_peaks")

    def memory_summary(self) -> str:
        return "" if self.stats is None else "a summary"
