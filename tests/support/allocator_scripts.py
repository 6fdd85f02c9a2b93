"""Calls that were made to the allocators of torch releases, with all that these did.

Each file holds a few random programs. They were run with the release's own ``libc10_cuda``, on a
CUDA runtime that only keeps accounts: it hands out addresses, and nothing when the device is full.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.allocator_traces import flatten
from vramscope_analysis.allocator import (
    AllocatorSettings,
    Block,
    CachingAllocator,
    OutOfMemoryError,
    changed_settings,
)
from vramscope_analysis.allocator.events import PoolId

FOLDER = Path(__file__).parents[1] / "data" / "allocator_calls"
RELEASES = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.iterdir())

Step = list[Any]
"""Call, what the allocator did, its answer (an address, "oom" or "ok"), what a look at it shows."""


def scripts_of(release: str) -> list[dict[str, Any]]:
    """The programs of one release."""
    with gzip.open(FOLDER / f"{release}.json.gz") as file:
        scripts: list[dict[str, Any]] = json.load(file)["scripts"]
    return scripts


class GivenAddresses:
    """Places memory where the device placed it; takes nothing that the device did not give."""

    def __init__(self) -> None:
        self.segments: list[tuple[int, int]] = []
        self.ranges: list[tuple[int, int]] = []

    def reserve(self, size_bytes: int) -> int:
        return self._next(self.segments, size_bytes)

    def reserve_range(self, size_bytes: int) -> int:
        return self._next(self.ranges, size_bytes)

    def release(self, address: int, size_bytes: int) -> None:
        """The recording says where the next one goes."""

    def release_range(self, address: int, size_bytes: int) -> None:
        """The recording says where the next one goes."""

    def _next(self, given: list[tuple[int, int]], size_bytes: int) -> int:
        assert given, f"{size_bytes} bytes taken that the allocator of the release did not take"
        address, given_bytes = given.pop(0)
        assert size_bytes == given_bytes
        return address


class Script:
    """Makes the calls of one program to the model and compares all that comes of them.

    Args:
        version: release that the program was run with.
        script: as :func:`scripts_of` returns it.
    """

    def __init__(self, version: tuple[int, int], script: dict[str, Any]) -> None:
        self.version = version
        self.steps: list[Step] = script["steps"]
        self.addresses = GivenAddresses()
        self.done: list[list[Any]] = []
        self.blocks: dict[str, Block] = {}
        self.freed: list[Block] = []
        self.over: list[Block] = []
        self.holding: dict[str, bool] = {}  # scopes that are open, and whether events wait for them
        self.model = CachingAllocator(
            script["capacity_bytes"], version=version, addresses=self.addresses, on_event=self.note
        )

    def note(
        self, action: str, address: int, size_bytes: int, stream: int, pool_id: PoolId
    ) -> None:
        # Before 2.8 the allocator itself did not say which pool an event belongs to.
        known_id = pool_id if self.version >= (2, 8) else (0, 0)
        self.done.append([action, address, size_bytes, stream, list(known_id)])

    def run(self) -> Iterator[tuple[str, Any, Any]]:
        """Each call with what came of it here and in the release."""
        for position, step in enumerate(self.steps):
            call, events, answer = step[:3]
            self.done.clear()
            self.addresses.segments += [(e[1], e[2]) for e in events if e[0] == "reserve"]
            self.addresses.ranges += [(e[1], e[2]) for e in events if e[0] == "reserve_range"]
            got = self.make(call.split(), position)
            # What a flush has completed may soon be handed out and freed again: forget it now.
            self.over = [block for block in self.over if block.pending]
            self.freed = [block for block in self.freed if block.pending]
            expected = [event for event in events if not event[0].startswith("reserve")]
            done = self.done
            if self.version >= (2, 8):
                # Which of several unused private pools is released first is not defined.
                expected, done = by_pool(expected), by_pool(done)
            assert not self.addresses.segments, f"less memory taken at {position} {call}"
            yield f"{position} {call}", (list(done), got), (expected, answer)
            if len(step) > 3:
                yield f"{position} {call}", self.look(call), step[3]

    def make(self, call: list[str], position: int) -> Any:
        """Make one call; returns its answer."""
        name, arguments = call[0], call[1:]
        if name == "m":
            return self.malloc(arguments[0], int(arguments[1]), int(arguments[2]))
        if name == "begin":
            self.begin(arguments, position)
        elif name in ("f", "r") and arguments[0] not in self.blocks:
            pass  # it was never handed out
        elif name == "f":
            self.free(arguments[0])
        elif name == "r":
            self.model.record_stream(self.blocks[arguments[0]], int(arguments[1]))
        elif name == "sync":
            self.over, self.freed = self.over + self.freed, []
        elif name == "e":
            self.model.empty_cache(pool_of(arguments))
        elif name == "create":
            self.model.create_pool(
                pool_of(arguments), use_on_oom=arguments[2] == "1", no_split=arguments[3] == "1"
            )
        elif name == "end":
            del self.holding[arguments[1]]
            self.model.end_allocate_to_pool(pool_of(arguments))
        elif name == "release":
            self.model.release_pool(pool_of(arguments))
        elif name == "set":
            settings: AllocatorSettings = self.model.settings
            self.model.set_settings(changed_settings(arguments[0], settings, version=self.version))
        elif name == "frac":
            self.model.set_memory_fraction(float(arguments[0]))
        elif name == "peaks":
            self.model.reset_peaks()
        elif name == "accum":
            self.model.reset_accumulated()
        else:
            assert name in ("stats", "snap", "capture", "mark"), name
        return "ok"

    def malloc(self, name: str, size_bytes: int, stream: int) -> Any:
        if not any(self.holding.values()):
            for block in self.over:
                if block.pending:
                    self.model.complete_free(block)
            self.over.clear()
        try:
            block = self.model.malloc(size_bytes, stream)
        except OutOfMemoryError:
            return "oom"
        self.blocks[name] = block
        return block.address

    def free(self, name: str) -> None:
        block = self.blocks.pop(name)
        self.model.free(block)
        if block.pending and not any(self.holding.values()):
            self.freed.append(block)

    def begin(self, arguments: list[str], position: int) -> None:
        is_capture = self.steps[position + 1][0] == "capture 0 1"
        self.holding[arguments[1]] = is_capture or self.version < (2, 13)
        self.model.begin_allocate_to_pool(
            pool_of(arguments),
            is_capture=is_capture,
            streams=[int(stream) for stream in arguments[2:]] or None,
        )

    def look(self, call: str) -> Any:
        """The counters, or the segments, in the form of the files."""
        if call == "stats":
            return stats_of(self.model)
        return [
            [
                segment["address"],
                segment["stream"],
                segment["segment_type"],
                segment["is_expandable"],
                list(segment["segment_pool_id"]),
                [block_of(block) for block in segment["blocks"]],
            ]
            for segment in self.model.segments()
        ]


def by_pool(events: list[list[Any]]) -> list[list[Any]]:
    """Runs of releases in the order of their pools."""
    ordered: list[list[Any]] = []
    run: list[list[Any]] = []
    for event in events:
        if event[0] in ("segment_free", "segment_unmap"):
            run.append(event)
            continue
        ordered += sorted(run, key=lambda one: one[4])
        run = []
        ordered.append(event)
    return ordered + sorted(run, key=lambda one: one[4])


def pool_of(arguments: list[str]) -> PoolId:
    return int(arguments[0]), int(arguments[1])


def block_of(block: dict[str, Any]) -> list[int]:
    state = block["state"]
    return [
        block["size"],
        block["requested_size"],
        int(state == "active_allocated"),
        int(state != "inactive"),
    ]


def stats_of(model: CachingAllocator) -> dict[str, Any]:
    """Counters by name; current, peak, allocated and freed of a gauge in one list."""
    counters = model.memory_stats()
    private = counters.pop("reserved_bytes_by_private_pools", {})
    for pool_id, stat in private.items():
        counters["reserved_bytes_by_private_pools.{}_{}".format(*pool_id)] = stat
    stats: dict[str, Any] = {}
    for name, value in flatten(counters).items():
        gauge, _, leaf = name.rpartition(".")
        if leaf in ("current", "peak", "allocated", "freed"):
            stats.setdefault(gauge, []).append(value)
        else:
            stats[name] = value
    return stats
