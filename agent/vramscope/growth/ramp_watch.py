"""Looks once between the ends of two steps, when memory is high: what an evaluation has gathered.

No step ends inside an evaluation, so the training thread cannot be asked there. The agent's own
thread looks at Python's objects instead: it makes no call to the device, and holds the GIL for as
long as it takes, so that nothing changes under its eyes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from vramscope.devices.caching_allocator import current_bytes
from vramscope.growth.idle_tensors import IdleGroup
from vramscope.growth.report import growth_report, idle_report
from vramscope.history.no_collection import no_collection
from vramscope.holders.clusters import Way, clusters
from vramscope.holders.code_owner import Owner, owner_of
from vramscope.holders.graph_holders import graph_holders
from vramscope.holders.holder import HolderFound, SourceLine
from vramscope.holders.live_tensors import TensorClasses, looking, words_of
from vramscope.holders.others_wait import others_wait
from vramscope.holders.reach import Reach
from vramscope.holders.search import named_within, ways_within
from vramscope.holders.storing_line import find_storing_lines
from vramscope.tensors.census import Storage
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import ExplainGrowthParams

MOST_S: Final = 0.1
"""For no longer than this everybody else waits."""
MAX_TENSORS: Final = 100
MAX_GROUPS: Final = 6
_LEAST_SHARE: Final = 0.05
"""Of all allocated memory: what holds less is not told."""
_TICKS: Final = 2
"""Within one and the same step it has to be high so many times: a training step is not."""


class Allocating(Protocol):
    """What is asked of the device."""

    def memory_stats(self) -> Mapping[str, Any] | None:
        """Counters; ``None`` if not up."""
        ...

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage."""
        ...


class RampWatch:
    """One answer to the question what is held within a step. Implements ``Ongoing``.

    Args:
        device: says how much is allocated.
        params: ``above_bytes`` is when to look, ``max_steps`` when to give up.
        step: steps finished when it begins.
        add_cost_ns: told what the look costs.
    """

    def __init__(
        self,
        device: Allocating,
        params: ExplainGrowthParams,
        step: int,
        add_cost_ns: Callable[[int], object],
    ) -> None:
        self._device = device
        self._params = params
        self._add_cost_ns = add_cost_ns
        self.is_on = True
        """Whether it goes on."""
        self._step = step
        self._steps = 0
        self._high_ticks = 0
        self._spent_ns = 0
        self._notes: list[str] = []

    @property
    def progress(self) -> str:
        """How far it is."""
        return f"waited {self._steps} of {self._params.max_steps} steps"

    def poll(self, step: int) -> Receipt | None:
        """A step has ended: what was high was within it."""
        self._step = step
        self._steps += 1
        self._high_ticks = 0
        return None

    def poll_on_agent_thread(self) -> Receipt | None:
        """Look if memory is high, or give up."""
        allocated_bytes = current_bytes(self._device.memory_stats(), "allocated_bytes")
        is_high = allocated_bytes >= (self._params.above_bytes or 0)
        self._high_ticks = self._high_ticks + 1 if is_high else 0
        if self._high_ticks >= _TICKS:
            return self._answer(allocated_bytes)
        if self._steps >= self._params.max_steps:
            self.is_on = False
            message = f"Memory was not as high within a step: {self.progress}."
            return Receipt("done", message=message, result=self._report([], 0))
        return None

    def cancel(self, reason: str) -> Receipt:
        """Wait no more. Any thread."""
        self.is_on = False
        self._notes.append(reason)
        return Receipt("failed", message=f"{reason}; {self.progress}", result=self._report([], 0))

    def _answer(self, allocated_bytes: int) -> Receipt:
        limit_s = min(self._params.max_ms / 1e3, MOST_S)
        start_ns = time.perf_counter_ns()
        with no_collection(), others_wait():
            groups = held_now(self._device.storage, limit_s, self._notes)
        self._spent_ns = time.perf_counter_ns() - start_ns
        self._add_cost_ns(self._spent_ns)
        least = _LEAST_SHARE * allocated_bytes
        told = [
            each for each in groups if each.bytes >= least or each.holder.kind == "autograd_graph"
        ][:MAX_GROUPS]
        find_storing_lines(each.holder for each in told)
        # Of graphs of the same length: that whose tensor is made of itself.
        told.sort(key=lambda each: (each.holder.kind == "autograd_graph", _is_unknown(each)))
        self.is_on = False
        names = [each.holder.chain[0] for each in told if each.holder.chain]
        message = f"Held within step {self._step + 1}: {', '.join(names[:3]) or 'by no name'}."
        return Receipt("done", message=message, result=self._report(told, allocated_bytes))

    def _report(self, groups: list[IdleGroup], allocated_bytes: int) -> dict[str, Any]:
        return growth_report(
            [],
            steps=[self._step],
            live_bytes=[allocated_bytes] if allocated_bytes else [],
            spent_ns=self._spent_ns,
            steps_watched=self._steps,
            garbage={},
            host_groups=(),
            held=[idle_report(each) for each in groups],
            notes=self._notes,
            complete=not self._notes,
        )


def _is_unknown(group: IdleGroup) -> bool:
    is_graph = group.holder.kind == "autograd_graph"
    return is_graph and group.holder.stored_at is None


def held_now(storage: Storage, limit_s: float, notes: list[str]) -> list[IdleGroup]:
    """The largest tensors by what holds them, then what has a long graph. Holds the GIL.

    Args:
        storage: finds a tensor's storage on the device.
        limit_s: how long to look.
        notes: gets what kept it from seeing all.
    """
    classes = TensorClasses()
    reach = Reach(limit_s)
    try:
        with looking():
            reach.search(classes.is_plain)
            sizes = _largest(reach, storage)
            graphs = [n for n in reach.found if reach.objects[n].grad_fn is not None]
            found = graph_holders(reach, graphs, lambda tensor: None, limit_s / 2).holders
            found.sort(key=_is_passed_on)
            return [
                *_groups(reach, sizes),
                *(IdleGroup(0, holder.tensors, [], holder, "") for holder in found),
            ]
    finally:
        if not reach.is_complete:
            notes.append(f"the search for holders ended after {len(reach.objects):,} objects")
        reach.clear()


def _ways(reach: Reach, number: int) -> list[Way]:
    """Rather those from names of the job than from those of what it has just called."""
    ways = ways_within(reach, number)
    own = [way for way in ways if way.root is None or _is_users(way.root.line)]
    return own or ways


def _is_users(line: SourceLine | None) -> bool:
    return line is None or owner_of(line.file) is Owner.USER


def _is_passed_on(holder: HolderFound) -> bool:
    """Whether it is a variable of a function that the job has called and not written."""
    return not _is_users(holder.frame)


def _largest(reach: Reach, storage: Storage) -> dict[int, int]:
    """Bytes of the largest tensors by number, one for each storage; no parameters."""
    at_address: dict[int, tuple[int, int]] = {}
    for number in reach.found:
        tensor = reach.objects[number]
        place = None if tensor.is_leaf and tensor.requires_grad else storage(tensor)
        if place is not None and place[1]:
            at_address.setdefault(place[0], (place[1], number))
    largest = sorted(at_address.values(), reverse=True)[:MAX_TENSORS]
    return {number: size_bytes for size_bytes, number in largest}


def _groups(reach: Reach, sizes: Mapping[int, int]) -> list[IdleGroup]:
    ways = {number: _ways(reach, number) for number in sizes}
    groups: list[IdleGroup] = []
    for cluster in clusters(ways, dict.fromkeys(sizes, 0), reach.above):
        members = [number for number in cluster.members if number in sizes]
        words = words_of(reach.objects[number] for number in members)
        held_bytes = sum(sizes[number] for number in members)
        groups.append(IdleGroup(held_bytes, len(members), words, named_within(reach, cluster), ""))
    return sorted(groups, key=lambda group: -group.bytes)
