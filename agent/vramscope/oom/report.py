"""What is written down when memory runs out: the least first, then all that there is time for."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import msgspec

from vramscope.batching.sizes import NewSizes
from vramscope.guard import guarded
from vramscope.holders.live_tensors import looking
from vramscope.holders.others_wait import others_wait
from vramscope.identity.identity import Identity
from vramscope.identity.secrets import run_secret
from vramscope.memory_map.owners import Owners as OwnersLike
from vramscope.oom.block_sums import free_blocks, live_by_size, live_by_stack
from vramscope.oom.device_readings import DeviceReadings
from vramscope.oom.largest_tensors import largest_tensors
from vramscope.oom.moment import Moment
from vramscope.oom.recent_rows import RecentRows
from vramscope.oom.thread_stacks import Line, part_of_step, thread_stacks
from vramscope.tensors.category import CODES, COLUMNS
from vramscope.tensors.census import Census, Storage
from vramscope.tensors.owners import Owners
from vramscope.tensors.tensor_account import TensorAccount
from vramscope_protocol.account import MemoryPart, ProcessMemory
from vramscope_protocol.claims import report_proof
from vramscope_protocol.codec import MAX_OOM_BYTES

FORMAT: Final = "vramscope-oom"
VERSION: Final = 1
AUTOGRAD_THREAD: Final = "autograd"
"""Name of a thread that Python did not start, in a backward pass."""

MOST_STRETCH: Final = 3.0
"""A job on busy processors may wait so many times as long."""

_SHARE_OF_STACKS: Final = 0.3
_GIVEN_UP_FIRST: Final = ("by_stack", "samples", "steps", "threads", "by_size", "largest")
"""What is given up first if a report is too large."""

Report = dict[str, Any]


class Sources(msgspec.Struct):
    """Where the parts of a report come from."""

    identity: Callable[[], Identity]
    readings: DeviceReadings
    step: Callable[[], int]
    phase: Callable[[], str]
    tensors: Callable[[], TensorAccount]
    samples: RecentRows
    steps: RecentRows
    settings: Callable[[], str | None]
    software: Callable[[], dict[str, str]]
    processes: Callable[[], list[ProcessMemory]]
    outside: Callable[[], list[MemoryPart]]
    emulated: bool
    new_sizes: Callable[[], NewSizes | None]
    """A change of the batch size whose first step runs."""


class ReportMaker:
    """Makes reports as plain data.

    Args:
        sources: where the parts come from.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def begin(self, moment: Moment) -> Report:
        """What is known at once: counters, the request and the stacks of all threads."""
        sources = self._sources
        identity = sources.identity()
        readings = sources.readings
        report: Report = {
            "format": FORMAT,
            "version": VERSION,
            "id": moment.id,
            "time_ns": moment.time_ns,
            "run": identity.run_id,
            "run_name": identity.run_name,
            "rank": identity.rank,
            "world_size": identity.world_size,
            "host": identity.host,
            "pid": identity.pid,
            "stream": identity.stream,
            # If this process is killed, another one delivers it, of another run perhaps.
            "proof": report_proof(run_secret(identity.run_name, identity.key), moment.id),
            "linked_to": moment.linked_to,
            "complete": False,
            "detail": "light",
            "skipped": moment.skipped,
            "notes": [],
            "step": sources.step(),
            "phase": sources.phase(),
            "part": "",
            "thread": "",
            "source": moment.source,
            "message": moment.message,
            "device": moment.device,
            "device_name": readings.name(moment.device),
            "device_total_bytes": readings.total_bytes(moment.device),
            "emulated": sources.emulated,
            "software": {**identity.software, **sources.software()},
            "request_bytes": None,
            "segment_bytes": moment.segment_bytes,
            "allowed_bytes": moment.allowed_bytes,
            "device_free_bytes": moment.device_free_bytes,
            "counters": {},
            "recovered_step": None,
            "new_sizes": None,
        }
        if report["allowed_bytes"] is None:
            report["allowed_bytes"] = readings.limit_bytes(moment.device)
        with _part(report, "new sizes"):
            sizes = sources.new_sizes()
            report["new_sizes"] = None if sizes is None else _plain(sizes)
        with _part(report, "counters"):
            report["counters"] = readings.counters(moment.device)
        with _part(report, "threads"), _beside(moment):
            _add_threads(report, moment)
        return report

    def complete(self, report: Report, moment: Moment, deadline_s: float) -> None:
        """Add what takes longer, as far as the time goes.

        Args:
            report: as :meth:`begin` made it.
            moment: what it is about.
            deadline_s: when to stop, by ``time.perf_counter``.
        """
        sources = self._sources
        start_s, start_cpu_s = time.perf_counter(), time.thread_time()
        time_s = max(0.0, deadline_s - start_s)
        report["detail"] = "full"
        with _part(report, "settings"):
            report["settings"] = sources.settings()
        with _part(report, "processes"):
            own_pid = report["pid"]
            report["processes"] = [
                {**_plain(each), "own": each.pid == own_pid} for each in sources.processes()
            ]
            report["outside"] = [_plain(each) for each in sources.outside()]
        with _part(report, "rows"):
            report["samples"] = sources.samples.columns()
            report["steps"] = sources.steps.columns()
        with _part(report, "segments"):
            self._add_blocks(report, moment, start_s + _SHARE_OF_STACKS * time_s)
        storage = sources.readings.storage(moment.device)
        owners: OwnersLike | None = None
        with _part(report, "categories"), _beside(moment):
            owners = self._add_categories(report, storage)
        with _part(report, "largest tensors"), _beside(moment):
            # Where the processors are busy, everything takes longer by so much.
            stretch = (time.perf_counter() - start_s) / max(time.thread_time() - start_cpu_s, 1e-3)
            deadline_s += time_s * (min(max(stretch, 1.0), MOST_STRETCH) - 1.0)
            # The search for holders goes through the variables of running functions: not beside
            # the job, from a thread of the agent.
            is_jobs_thread = moment.thread_number is not None
            report["largest"], report["garbage_bytes"] = [], None
            found = largest_tensors(storage, owners, deadline_s, holders=is_jobs_thread)
            report["largest"], report["garbage_bytes"] = found.rows, found.garbage_bytes
            if not found.is_complete:
                report["notes"].append("not every object of Python could be looked at in time")
        report["complete"] = True

    def _add_blocks(self, report: Report, moment: Moment, deadline_s: float) -> None:
        segments, why_not = self._sources.readings.segments(moment.device, report["counters"])
        if why_not is not None:
            report["notes"].append(f"no segments: {why_not}")
            return
        report["free_blocks"] = free_blocks(segments)
        report["by_size"] = live_by_size(segments)
        report["by_stack"], is_complete = live_by_stack(segments, deadline_s)
        if not is_complete:
            report["notes"].append("not every block could be looked at for its stack in time")

    def _add_categories(self, report: Report, storage: Storage) -> OwnersLike | None:
        sources = self._sources
        report["by_category"] = dict(sources.tensors().latest())
        if "torch" not in sys.modules:
            return None
        with looking():
            census: Census = sources.tensors().count_now(storage)
        if COLUMNS[0] not in report["by_category"] and census.tensors:
            # No step has ended yet: then what there is now, in the middle of the first.
            counted = [census.bytes_of[code] for code in CODES]
            report["by_category"] |= dict(zip(COLUMNS, counted, strict=True))
            report["notes"].append("categories as counted at the failure: no step had ended")
        return Owners(census.owned, report["step"], report["time_ns"])


def encoded(report: Report) -> bytes:
    """A report as JSON, without its largest parts if it would be too large."""
    data = _json(report)
    for name in _GIVEN_UP_FIRST:
        if len(data) <= MAX_OOM_BYTES:
            break
        if report.pop(name, None) is not None:
            report["notes"].append(f"{name} left out: the report would be too large")
            data = _json(report)
    return data


def _json(report: Report) -> bytes:
    try:
        return msgspec.json.encode(report)
    except UnicodeEncodeError:  # a file name that is no text
        return json.dumps(report, ensure_ascii=True).encode("ascii")


def _part(report: Report, name: str) -> Any:
    return _Part(report, name)


class _Part(guarded):
    """A part of a report that may fail without the others."""

    def __init__(self, report: Report, name: str) -> None:
        super().__init__(f"out of memory report: {name}")
        self._report = report
        self._name = name

    def __exit__(self, error_type: Any, error: Any, traceback: Any) -> bool:
        if isinstance(error, Exception):
            self._report["notes"].append(f"{self._name} missing: {type(error).__name__}")
        return super().__exit__(error_type, error, traceback)


def _beside(moment: Moment) -> AbstractContextManager[None]:
    """What is looked at beside the job, from a thread of the agent, must not change meanwhile."""
    return others_wait() if moment.thread_number is None else nullcontext()


def _add_threads(report: Report, moment: Moment) -> None:
    threads = thread_stacks(moment.thread_number)
    report["threads"] = threads
    for thread in threads:
        if thread["raised"] and moment.lines is not None:
            thread["frames"] = moment.lines
    in_backward = _is_in_backward() and moment.source == "observer"
    for thread in threads:
        if thread["raised"] and thread["daemon"] is None and in_backward:
            thread["name"] = AUTOGRAD_THREAD
    asked = next((each for each in threads if each["raised"]), None)
    report["thread"] = asked["name"] if asked is not None else ""
    lines: list[Line] = asked["frames"] if asked is not None else []
    if moment.source == "observer":
        report["grad_enabled"] = _is_grad_enabled()
    if moment.source != "asked":
        report["part"] = part_of_step(lines, in_backward=in_backward)


def _is_in_backward() -> bool:
    """Whether this thread runs a backward pass."""
    c_module: Any = getattr(sys.modules.get("torch"), "_C", None)
    ask = getattr(c_module, "_current_graph_task_id", None)
    return ask is not None and ask() != -1


def _is_grad_enabled() -> bool | None:
    """Whether this thread records a graph; in an evaluation it should not."""
    torch: Any = sys.modules.get("torch")
    return None if torch is None else bool(torch.is_grad_enabled())


def _plain(part: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {name: getattr(part, name) for name in part.__struct_fields__}
    return plain
