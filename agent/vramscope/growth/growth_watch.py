"""Looks at the live blocks over some steps, then says what grows and what holds it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from vramscope.devices.caching_allocator import current_bytes
from vramscope.growth.group_holders import GroupHolders, Held, name_missing
from vramscope.growth.groups import Group, growing_groups, rise
from vramscope.growth.idle_tensors import IdleGroup
from vramscope.growth.live_blocks import LiveBlocks
from vramscope.growth.pace import MAX_LOOKS, LookPace, spread
from vramscope.growth.recording import StackRecording
from vramscope.growth.report import group_report, growth_report, idle_report
from vramscope.growth.shared_storages import SharedStorages
from vramscope.holders.storing_line import find_storing_lines
from vramscope.size_text import size_text
from vramscope_protocol.commands import ExplainGrowthParams, Receipt

MAX_GROUPS: Final = 12
_EXPLAINED: Final = 0.5
"""Part of what memory grew by that growing groups must make up, to be the explanation of it."""


BY_NAME_NS: Final = 8_000_000
"""What a search by the names of the job is expected to take."""
MOST_WAIT_BY_NAME_NS: Final = 1_000_000_000
UPWARDS_NS: Final = 100_000_000
"""What a search through all objects of the process is expected to take."""
MOST_WAIT_NS: Final = 5_000_000_000
"""How long such a search waits until it is within the budget."""


class LookedAt(Protocol):
    """What is asked of the device."""

    def memory_stats(self) -> Mapping[str, Any] | None:
        """Counters; ``None`` if not up."""
        ...

    def segments(self) -> list[dict[str, Any]]:
        """Segments with their blocks."""
        ...

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage."""
        ...


class GrowthWatch:
    """One answer to the question what grows. Implements ``Ongoing``; begins at once.

    Args:
        device: is looked at.
        recording: has the stacks recorded.
        params: how to look.
        issued_by: id of the command.
        add_cost_ns: told what the looks cost.
        optimizers: those that step the job's parameters.
    """

    def __init__(
        self,
        device: LookedAt,
        recording: StackRecording,
        params: ExplainGrowthParams,
        issued_by: str,
        add_cost_ns: Callable[[int], object],
        optimizers: Callable[[], list[Any]] = list,
    ) -> None:
        self._device = device
        self._recording = recording
        self._params = params
        self._add_cost_ns = add_cost_ns
        self._optimizers = optimizers
        self._idle: list[IdleGroup] = []
        self.is_on = True
        """Whether it goes on."""
        self._first_search: GroupHolders | None = None
        self._seen_enough_ns: int | None = None
        self._found: tuple[list[Group], list[Held]] | None = None
        self._searched_ns = 0
        self._shared = SharedStorages()
        self._shared.install()
        recording.start(issued_by)
        max_steps = max(params.max_steps, params.every * (params.looks + 1))
        self._pace = LookPace(params.every, max_steps, time.perf_counter_ns())
        with _no_collection():
            self._blocks = LiveBlocks(device.segments())
        self._steps: list[int] = []
        self._live_bytes: list[int] = []
        self._notes: list[str] = []

    @property
    def progress(self) -> str:
        """How far it is."""
        return f"{self._blocks.looks} looks in {self._pace.steps} steps"

    def poll(self, step: int) -> Receipt | None:
        """A step has ended."""
        if self._found is not None:
            return None
        ended = self._recording.why_ended
        if ended:
            self._notes.append(f"the recording ended early: {ended}")
            self._finish(upwards=False)
            return None
        now_ns = time.perf_counter_ns()
        allocated_bytes = current_bytes(self._device.memory_stats(), "allocated_bytes")
        may_look = self._pace.step_ended(allocated_bytes, now_ns)
        if self._first_search is not None:
            self._search_again(step, allocated_bytes, now_ns)
            return None
        if may_look:
            self._look(step, allocated_bytes)
            if self._seen_enough_ns is None and self._has_seen_enough():
                self._seen_enough_ns = now_ns
        if self._may_search(may_look=may_look, now_ns=now_ns):
            self._search_first()
        return None

    def _may_search(self, *, may_look: bool, now_ns: int) -> bool:
        if self._seen_enough_ns is None:
            return self._pace.is_over
        has_waited = now_ns - self._seen_enough_ns > MOST_WAIT_BY_NAME_NS
        return may_look and (has_waited or self._pace.may_take(BY_NAME_NS, now_ns))

    def cancel(self, reason: str) -> Receipt:
        """Stop looking, and tell what was seen, without the holders: any thread."""
        self._stop()
        self.is_on = False
        if self._found is not None:
            return self.poll_on_agent_thread() or Receipt("failed", message=reason)
        self._notes.append(reason)
        report = self._report([], [], complete=False)
        return Receipt("failed", message=f"{reason}; {self.progress}", result=report)

    def _look(self, step: int, allocated_bytes: int) -> None:
        start_ns = time.perf_counter_ns()
        with _no_collection():
            self._blocks.add(self._device.segments())
        self._steps.append(step)
        self._live_bytes.append(allocated_bytes)
        took_ns = time.perf_counter_ns() - start_ns
        self._pace.looked(allocated_bytes, took_ns)
        self._add_cost_ns(took_ns)

    def _has_seen_enough(self) -> bool:
        if self._blocks.looks >= MAX_LOOKS:
            return True
        if self._blocks.looks < self._params.looks:
            return False
        looks = self._compared()
        grown_bytes = self._live_bytes[looks[-1]] - self._live_bytes[looks[0]]
        found = sum(rise(group.bytes_at_looks) for group in self._groups(looks))
        return found > 0 and found >= _EXPLAINED * grown_bytes

    def _compared(self) -> list[int]:
        return spread(self._blocks.looks, self._params.looks)

    def _groups(self, looks: Sequence[int]) -> list[Group]:
        return growing_groups(self._blocks, looks) if len(looks) > 2 else []

    def _search_first(self) -> None:
        """Look for holders by name, which mostly explains all that grows."""
        search, groups, held = self._search(upwards=False)
        if not any(each.missing for each in held):
            self._conclude(groups, held)
            return
        self._first_search = search
        self._searched_ns = time.perf_counter_ns()

    def _search_again(self, step: int, allocated_bytes: int, now_ns: int) -> None:
        """Look once more, and upwards: as soon as that is within the budget, or has waited long."""
        waited_ns = now_ns - self._searched_ns
        if waited_ns < MOST_WAIT_NS and not self._pace.may_take(UPWARDS_NS, now_ns):
            return
        self._look(step, allocated_bytes)
        self._finish(upwards=True)

    def _finish(self, *, upwards: bool) -> None:
        search, groups, held = self._search(upwards=upwards)
        before = self._first_search
        graphs = [] if before is None else search.graphs.grown_since(before.graphs)
        for each in held:
            name_missing(each, graphs, self._shared.addresses, was_searched=upwards)
        self._conclude(groups, held)

    def _search(self, *, upwards: bool) -> tuple[GroupHolders, list[Group], list[Held]]:
        start_ns = time.perf_counter_ns()
        groups = self._groups(self._compared())[:MAX_GROUPS]
        births = {address: block.born for address, block in self._blocks.blocks.items()}
        search = GroupHolders(self._device.storage, births, self._params.max_ms / 1e3)
        held = search.find(groups, self._optimizers(), upwards=upwards)
        self._idle = search.idle
        self._notes += search.notes
        took_ns = time.perf_counter_ns() - start_ns
        self._pace.spent_ns += took_ns
        self._add_cost_ns(took_ns)
        return search, groups, held

    def _conclude(self, groups: list[Group], held: list[Held]) -> None:
        """All is known: the agent's own thread puts it into words."""
        self._stop()
        self._found = (groups, held)

    def poll_on_agent_thread(self) -> Receipt | None:
        """The receipt, once the looks are over: source files are read for it."""
        if self._found is None:
            return None
        groups, held = self._found
        find_storing_lines(holder for each in held for holder in each.holders)
        find_storing_lines(each.holder for each in self._idle)
        complete = len(self._steps) >= self._params.looks and not self._notes
        report = self._report(groups, held, complete=complete)
        self.is_on = False
        return Receipt("done", message=self._words(groups), result=report)

    def _stop(self) -> None:
        self._shared.remove()
        self._recording.stop()

    def _words(self, groups: Sequence[Group]) -> str:
        if not groups:
            return f"Nothing grows: {self.progress}."
        grown_bytes = sum(rise(group.bytes_at_looks) for group in groups)
        return f"{size_text(grown_bytes)} more from {len(groups)} places: {self.progress}."

    def _report(
        self, groups: Sequence[Group], held: Sequence[Held], *, complete: bool
    ) -> dict[str, Any]:
        looks = self._compared()
        note = self._recording.note
        return growth_report(
            [
                group_report(
                    group,
                    self._blocks.sources[group.source],
                    each.tensors,
                    each.holders,
                    _part(group.bytes, each.garbage, each.found + len(each.missing)),
                )
                for group, each in zip(groups, held, strict=True)
            ],
            steps=[self._steps[look] for look in looks],
            live_bytes=[self._live_bytes[look] for look in looks],
            spent_ns=self._pace.spent_ns,
            steps_watched=self._pace.steps,
            garbage=_garbage(groups, held),
            host_groups=(),
            held=[idle_report(each) for each in self._idle],
            notes=[*([note] if note else []), *self._notes],
            complete=complete,
        )


def _part(size_bytes: int, some: int, all_samples: int) -> int:
    return size_bytes * some // all_samples if all_samples else 0


def _garbage(groups: Sequence[Group], held: Sequence[Held]) -> dict[str, Any]:
    """What the collector would free of all that grows, as far as the samples tell."""
    found: dict[str, Any] = {}
    for group, each in zip(groups, held, strict=True):
        samples = each.found + len(each.missing)
        if each.garbage:
            found["bytes"] = found.get("bytes", 0) + _part(group.bytes, each.garbage, samples)
            found["tensors"] = found.get("tensors", 0) + _part(group.count, each.garbage, samples)
            circles = [holder.chain for holder in each.holders if holder.kind == "garbage"]
            found.setdefault("cycle", circles[0] if circles else [])
    return found


@contextmanager
def _no_collection() -> Generator[None]:
    """Keep Python from looking for garbage among the many objects of a list of segments."""
    was_on = gc.isenabled()
    try:
        gc.disable()  # inside: Ctrl-C may come right after it
        yield
    finally:
        if was_on:
            gc.enable()
