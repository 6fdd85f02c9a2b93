"""Recorded allocator traces (tests/data/traces) and their replay through the model."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vramscope_analysis.allocator import (
    AllocatorSettings,
    Block,
    CachingAllocator,
    OutOfMemoryError,
)
from vramscope_analysis.allocator.rounding import round_size, segment_size

FOLDER = Path(__file__).parents[1] / "data" / "traces"
DEVICE_BYTES = 139 << 30  # of the card that recorded them; only ``limit_bytes`` ever bound

TraceEvent = tuple[str, int, int, int]
"""(action, address, size, stream); the address of an ``oom`` is left out as 0."""


class PlainUnpickler(pickle.Unpickler):
    """Builds plain data only: a snapshot refers to no class and no function."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"expected plain data, got {module_name}.{global_name}")


@dataclass
class Trace:
    """One recorded run from its first allocation on."""

    events: list[TraceEvent]
    segments: list[dict[str, Any]]
    settings: AllocatorSettings
    final_stats: dict[str, int]


def load_trace(name: str) -> Trace:
    """Read one trace and the counters that the real allocator ended with."""
    with gzip.open(FOLDER / f"{name}.pickle.gz") as file:
        snapshot = PlainUnpickler(file).load()
    recorded = snapshot["allocator_settings"]
    limit = recorded["max_split_size"]
    return Trace(
        events=[
            (entry["action"], entry.get("addr", 0), entry["size"], entry["stream"])
            for entry in snapshot["device_traces"][0]
        ],
        segments=snapshot["segments"],
        settings=AllocatorSettings(
            roundup_power2_divisions=tuple(recorded["roundup_power2_divisions"].values()),
            max_split_size_bytes=limit if limit > 0 else AllocatorSettings.max_split_size_bytes,
            garbage_collection_threshold=recorded["garbage_collection_threshold"],
        ),
        final_stats=json.loads((FOLDER / f"{name}.json").read_text())["final_stats"],
    )


class RecordedAddresses:
    """Places segments where the driver placed them, in the same order."""

    def __init__(self, events: Iterable[TraceEvent]) -> None:
        self._recorded: Iterator[TraceEvent] = (e for e in events if e[0] == "segment_alloc")

    def reserve(self, size_bytes: int) -> int:
        _action, address, recorded_bytes, _stream = next(self._recorded)
        assert size_bytes == recorded_bytes
        return address

    def release(self, address: int, size_bytes: int) -> None:
        """The recording says where the next segment goes."""

    def reserve_range(self, size_bytes: int) -> int:
        raise NotImplementedError("expected a trace without expandable segments")

    def release_range(self, address: int, size_bytes: int) -> None:
        raise NotImplementedError("expected a trace without expandable segments")


class TraceReplay:
    """Makes the calls behind a trace and checks every event that the model answers with."""

    def __init__(self, trace: Trace, *, limit_bytes: int | None = None) -> None:
        self.trace = trace
        self.model = CachingAllocator(
            DEVICE_BYTES,
            trace.settings,
            limit_bytes=limit_bytes,
            addresses=RecordedAddresses(trace.events),
            on_event=self._check,
        )
        self.position = 0
        self.errors: list[OutOfMemoryError] = []
        self._live: dict[int, Block] = {}

    def run(self) -> None:
        """Replay to the end; the first differing event fails."""
        while self.position < len(self.trace.events):
            before = self.position
            self._next_call()()
            assert self.position > before, f"no event came where {self._expected()} is recorded"

    def _expected(self) -> TraceEvent:
        return self.trace.events[self.position]

    def _check(
        self, action: str, address: int, size_bytes: int, stream: int, pool_id: tuple[int, int]
    ) -> None:
        event = (action, 0 if action == "oom" else address, size_bytes, stream)
        assert event == self._expected(), f"event {self.position}"
        self.position += 1

    def _next_call(self) -> Callable[[], None]:
        action, address, _size, _stream = self._expected()
        if action == "free_requested":
            return lambda: self.model.free(self._live.pop(address))
        cause = self._next_cause()
        if action == "segment_free" and not self._flushes(cause):
            return self.model.empty_cache
        return lambda: self._malloc(cause)

    def _next_cause(self) -> TraceEvent:
        """Next event that a caller caused: segments come and go on the way to it."""
        position = self.position
        while self.trace.events[position][0].startswith("segment_"):
            position += 1
        return self.trace.events[position]

    def _flushes(self, cause: TraceEvent) -> bool:
        """Whether a request finds no room, so that the model itself gives segments back."""
        action, _address, size_bytes, _stream = cause
        settings = self.trace.settings
        wanted = segment_size(round_size(size_bytes, settings), settings)
        room = (self.model.allowed_bytes or DEVICE_BYTES) - self.model.reserved_bytes
        return action in ("alloc", "oom") and wanted > room

    def _malloc(self, cause: TraceEvent) -> None:
        try:
            block = self.model.malloc(cause[2], cause[3])
        except OutOfMemoryError as error:
            self.errors.append(error)
        else:
            self._live[block.address] = block


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, int]:
    """Counters by dotted name, as ``torch.cuda.memory_stats()`` returns them."""
    flat: dict[str, int] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat
