"""Small recordings written entry by entry, and recorded ones with stacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.support.allocator_traces import FOLDER
from vramscope_analysis.moments import RecordedMemory
from vramscope_analysis.snapshot import Snapshot, read_snapshot

KIB = 1 << 10
MIB = 1 << 20
BASE = 0x7000_0000_0000
LAST_STEPS = Path(__file__).parents[1] / "data" / "moments" / "leak_last_steps.pickle.gz"
"""The last 8,000 entries of ``leak__default`` with stacks: a ring that wrapped."""

Frame = tuple[str, int, str]
TORCH = "/usr/lib/python3/site-packages/torch/"
CALL = (TORCH + "nn/modules/module.py", 1790, "_call_impl")
MODULE = ("/home/ada/train.py", 76, "<module>")
FORWARD = ("/home/ada/model.py", 20, "forward")
LINEAR = (TORCH + "nn/modules/linear.py", 134, "forward")
LOOP = ("/home/ada/train.py", 30, "train_step")
INIT_GROUP = (TORCH + "optim/adam.py", 178, "_init_group")
STEP = (TORCH + "optim/adam.py", 238, "step")

FORWARD_STACK = [LINEAR, CALL, FORWARD, CALL, LOOP, MODULE]
"""Innermost first, as PyTorch has them."""
OPTIMIZER_STACK = [INIT_GROUP, STEP, LOOP, MODULE]
LOOP_STACK = [LOOP, MODULE]


def frames(stack: Iterable[Frame]) -> list[dict[str, Any]]:
    """A stack in PyTorch's structure."""
    return [{"filename": file, "line": line, "name": name} for file, line, name in stack]


def entry(
    action: str,
    address: int,
    size: int,
    *,
    time_us: int = 0,
    stack: Sequence[Frame] = (),
    **more: Any,
) -> dict[str, Any]:
    """One trace entry; the address counts from a base that no test cares about."""
    where = {"device_free": address} if action == "oom" else {"addr": BASE + address}
    made = {"action": action, **where, "size": size, "stream": 0, "time_us": time_us, **more}
    return {**made, "frames": frames(stack)} if stack else made


def block(
    size: int, requested: int = 0, *, state: str = "", stack: Sequence[Frame] = ()
) -> dict[str, Any]:
    """One block of a segment: free unless something was asked for."""
    default = "active_allocated" if requested else "inactive"
    return {
        "size": size,
        "requested_size": requested,
        "state": state or default,
        "frames": frames(stack),
    }


def segment(address: int, blocks: Sequence[dict[str, Any]], *, device: int = 0) -> dict[str, Any]:
    """A segment of these blocks."""
    begin = BASE + address
    placed = []
    for one in blocks:
        placed.append({**one, "address": begin})
        begin += one["size"]
    live = [one for one in blocks if one["state"] != "inactive"]
    return {
        "device": device,
        "address": BASE + address,
        "total_size": sum(one["size"] for one in blocks),
        "allocated_size": sum(one["size"] for one in live),
        "active_size": sum(one["size"] for one in live),
        "requested_size": sum(one["requested_size"] for one in live),
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": placed,
    }


def scope(name: str, start_us: int, end_us: int, device: int = 0) -> list[dict[str, Any]]:
    """Both edges of a stretch that the job named."""
    return [
        {"name": name, "stage": stage, "device": device, "time_us": at}
        for stage, at in (("START", start_us), ("END", end_us))
    ]


def snapshot(
    trace: Sequence[dict[str, Any]] = (),
    segments: Sequence[dict[str, Any]] = (),
    *,
    annotations: Sequence[dict[str, Any]] = (),
    settings: dict[str, Any] | None = None,
) -> Snapshot:
    """A snapshot of one device."""
    plain = {
        "segments": list(segments),
        "device_traces": [list(trace)],
        "allocator_settings": settings or {},
        "external_annotations": list(annotations),
    }
    return Snapshot.from_plain(plain)


def memory(*args: Any, told_steps: Sequence[Sequence[int]] = (), **kwargs: Any) -> RecordedMemory:
    """The memory of such a snapshot."""
    return RecordedMemory.of(snapshot(*args, **kwargs), told_steps=told_steps)


@lru_cache(maxsize=4)
def recorded(name: str) -> RecordedMemory:
    """A recording of the test data."""
    return RecordedMemory.of(read_snapshot(FOLDER / f"{name}.pickle.gz"))


@lru_cache(maxsize=1)
def last_steps() -> RecordedMemory:
    """The end of a recording whose begin is lost."""
    return RecordedMemory.of(read_snapshot(LAST_STEPS))


def two_steps() -> RecordedMemory:
    """Parameters, an activation, its gradient, optimizer state, and a block that is kept: twice."""
    entries = [entry("segment_alloc", 0, 20 * MIB, time_us=10)]
    entries.append(entry("alloc", 0, 2 * MIB, time_us=10, stack=LOOP_STACK))
    at = 100
    for step in range(2):
        grown = 10 * MIB + step * MIB
        entries += [
            entry("alloc", 2 * MIB, 4 * MIB, time_us=at, stack=FORWARD_STACK),
            entry("alloc", 6 * MIB, 2 * MIB, time_us=at + 10),
            entry("free_requested", 2 * MIB, 4 * MIB, time_us=at + 20),
            entry("free_completed", 2 * MIB, 4 * MIB, time_us=at + 20),
            entry("alloc", grown, MIB, time_us=at + 40, stack=OPTIMIZER_STACK),
            entry("free_requested", 6 * MIB, 2 * MIB, time_us=at + 60),
            entry("free_completed", 6 * MIB, 2 * MIB, time_us=at + 60),
        ]
        at += 100
    end = segment(
        0,
        [
            block(2 * MIB, 2 * MIB, stack=LOOP_STACK),
            block(8 * MIB),
            block(MIB, MIB, stack=OPTIMIZER_STACK),
            block(MIB, MIB, stack=OPTIMIZER_STACK),
            block(8 * MIB),
        ],
    )
    scopes = [
        *scope("Optimizer.step#Adam.step", 130, 150),
        *scope("Optimizer.step#Adam.step", 230, 250),
    ]
    return memory(entries, [end], annotations=scopes)
