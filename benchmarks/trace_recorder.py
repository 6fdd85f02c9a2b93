"""Records the complete history of PyTorch's CUDA caching allocator beside its own counters.

The result is two files: NAME.pickle.gz, what ``torch.cuda.memory._snapshot()`` returns, with every
allocation from the first one on, and NAME.json, the allocator's counters after each step and at the
end, and the calls that leave no trace entry. A replay of the first must arrive at the second.
"""

from __future__ import annotations

import gzip
import json
import pickle
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.unlogged_calls import watch_unlogged_calls

MAX_ENTRIES = 1_000_000

# Each of these totals rises by one with each trace entry, so their sum says where in the trace
# a moment lies: exactly, which the time stamps of the entries cannot.
ENTRY_TOTALS = (
    "allocation.all.allocated",  # alloc
    "allocation.all.freed",  # free_requested
    "active.all.freed",  # free_completed
    "num_device_alloc",  # segment_alloc, segment_map
    "num_device_free",  # segment_free, segment_unmap
    "num_ooms",  # oom
)

COUNTERS = (
    "allocated_bytes.all.current",
    "active_bytes.all.current",
    "reserved_bytes.all.current",
    "inactive_split_bytes.all.current",
    "requested_bytes.all.current",
    "allocated_bytes.all.peak",
    "reserved_bytes.all.peak",
    "num_alloc_retries",
    "num_ooms",
    "num_device_alloc",
    "num_device_free",
    "segment.all.current",
    "allocation.all.current",
    "active.all.current",
    "inactive_split.all.current",
    "allocated_bytes.small_pool.current",
    "allocated_bytes.large_pool.current",
    "reserved_bytes.small_pool.current",
    "reserved_bytes.large_pool.current",
    "active_bytes.all.peak",
    "requested_bytes.all.peak",
    "inactive_split_bytes.all.peak",
    "oversize_allocations.current",
    "oversize_segments.current",
    "num_sync_all_streams",
)


class TraceRecorder:
    """One recording: made before the process's first allocation, saved after its last step.

    Without a CUDA device everything runs on the CPU and nothing is recorded: a workload can be
    tried anywhere.
    """

    def __init__(self, *, with_frames: bool = False) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._rows: list[list[int]] = []
        self._row_events: list[int] = []
        self._row_times_us: list[int] = []
        self._calls: list[dict[str, Any]] = []
        self._ooms: list[dict[str, int]] = []
        if self.records:
            self._start(with_frames)

    @property
    def records(self) -> bool:
        """Whether there is a CUDA device whose allocator is recorded."""
        return self.device == "cuda"

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return len(self._rows)

    def _start(self, with_frames: bool) -> None:
        torch.cuda.init()
        self._total_bytes = torch.cuda.get_device_properties(0).total_memory
        if self._entries() != 0:
            raise RuntimeError("expected an allocator that was never used, got one with a history")
        torch.cuda.memory._record_memory_history(
            "all",
            context="alloc" if with_frames else None,
            stacks="python",
            max_entries=MAX_ENTRIES,
        )
        watch_unlogged_calls(self._note, self._total_bytes)
        torch._C._cuda_attach_out_of_memory_observer(self._note_oom)

    def set_limit(self, limit_bytes: int) -> None:
        """Cap what the process may reserve, by the memory fraction that comes closest."""
        if self.records:
            torch.cuda.set_per_process_memory_fraction(limit_bytes / self._total_bytes)

    def end_step(self) -> None:
        """Read the counters: one row."""
        if not self.records:
            self._rows.append([len(self._rows)])
            return
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        self._row_times_us.append(_now_us())
        self._row_events.append(sum(stats[name] for name in ENTRY_TOTALS))
        self._rows.append([len(self._rows), *(stats[name] for name in COUNTERS)])

    def save(self, folder: Path, name: str, *, workload: str, conf: str) -> int:
        """Write NAME.pickle.gz and NAME.json; number of trace entries."""
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        snapshot = torch.cuda.memory._snapshot()
        trace = [entry for entry in snapshot["device_traces"][0] if entry["action"] != "snapshot"]
        counted = int(sum(stats[name] for name in ENTRY_TOTALS))
        if len(trace) != counted:
            raise RuntimeError(
                f"expected {counted} trace entries by the counters, got {len(trace)}"
            )
        text = json.dumps(
            {
                "format": 2,
                "workload": workload,
                "conf": conf,
                "torch": torch.__version__,
                "device": torch.cuda.get_device_name(),
                "capacity_bytes": self._total_bytes,
                "limit_bytes": self._first_limit_bytes(),
                "columns": ["step", *COUNTERS],
                "steps": self._rows,
                "events": self._row_events,
                "times_us": self._row_times_us,
                "calls": self._calls,
                "ooms": self._ooms,
                "final_stats": stats,
            }
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(text.replace("], [", "],\n["))
        with (
            open(folder / f"{name}.pickle.gz", "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        ):
            pickle.dump(snapshot, packed, protocol=4)  # the newest that the viewer reads
        return counted

    def _first_limit_bytes(self) -> int | None:
        """Limit before the first allocation."""
        first = None
        for call in self._calls:
            if call["call"] == "set_limit" and call["events"] == 0:
                first = call["limit_bytes"]
        return first

    @staticmethod
    def _entries() -> int:
        stats = torch.cuda.memory_stats()
        # Before the first allocation there are no counters at all.
        return int(sum(stats.get(name, 0) for name in ENTRY_TOTALS))

    def _note(self, call: str, **details: Any) -> dict[str, Any]:
        noted = {"call": call, "events": self._entries(), "time_us": _now_us(), **details}
        self._calls.append(noted)
        return noted

    def _note_oom(self, _device: int, segment: int, allowed: int, free: int) -> None:
        """The allocator calls this on the allocating thread, just before it raises."""
        self._ooms.append(
            {
                "events": self._entries(),
                "time_us": _now_us(),
                "segment_bytes": segment,
                "limit_bytes": allowed,
                "free_bytes": free,
            }
        )


def _now_us() -> int:
    """Time of the clock that stamps the trace entries."""
    return time.time_ns() // 1000
