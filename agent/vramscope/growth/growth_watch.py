"""Looks at the live blocks over some steps, then says what grows and what holds it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from vramscope.devices.caching_allocator import current_bytes
from vramscope.growth.group_holders import GroupHolders, Held, name_missing
from vramscope.growth.groups import Group, rise
from vramscope.growth.idle_tensors import IdleGroup
from vramscope.growth.looks import Looks
from vramscope.growth.pace import LookPace
from vramscope.growth.recording import StackRecording
from vramscope.growth.report import garbage_report, group_report, growth_report, idle_report
from vramscope.growth.shared_storages import SharedStorages
from vramscope.history.no_collection import no_collection
from vramscope.holders.storing_line import find_storing_lines
from vramscope.size_text import size_text
from vramscope_protocol.commands import ExplainGrowthParams, Receipt

MAX_GROUPS: Final = 12
BY_NAME_NS: Final = 16_000_000
"""What a search by the names of the job is expected to take."""
MOST_WAIT_BY_NAME_NS: Final = 1_500_000_000
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
        self.is_on = True
        """Whether it goes on."""
        self._first_search: GroupHolders | None = None
        self._by_name_ns = 0
        """What the first search took: one upwards begins as that one did."""
        self._since_ns: int | None = None
        """Since when there is something to search for, which waits for the budget."""
        self._found: tuple[list[Group], list[Held]] | None = None
        self._idle: list[IdleGroup] = []
        self._notes: list[str] = []
        self._shared = SharedStorages()
        self._shared.install()
        recording.start(issued_by)
        max_steps = max(params.max_steps, params.every * (params.looks + 1))
        self._pace = LookPace(params.every, max_steps, time.perf_counter_ns())
        is_begun = False
        try:
            with no_collection():
                self._looks = Looks(device.segments(), params.looks)
            is_begun = True
        finally:
            if not is_begun:  # nobody would ever end it
                self._stop()

    @property
    def progress(self) -> str:
        """How far it is."""
        return f"{self._looks.blocks.looks} looks in {self._pace.steps} steps"

    def poll(self, step: int) -> Receipt | None:
        """A step has ended."""
        if self._found is None:
            # What is made here would have Python collect just what is to be seen.
            with no_collection():
                self._step_ended(step)
        return None

    def _step_ended(self, step: int) -> None:
        ended = self._recording.why_ended
        if ended:
            self._notes.append(f"the recording ended early: {ended}")
            self._search(upwards=False)
            return
        now_ns = time.perf_counter_ns()
        allocated_bytes = current_bytes(self._device.memory_stats(), "allocated_bytes")
        if self._looks.saw(allocated_bytes, _collected()):
            # What was to be searched for is gone.
            self._first_search = self._since_ns = None
            self._pace.begin_anew()
        if self._pace.step_ended(allocated_bytes, now_ns):
            self._look(step, allocated_bytes)
            if self._since_ns is None and self._looks.show_growth():
                self._since_ns = now_ns
        if self._may_search(now_ns):
            if self._first_search is not None and self._looks.steps[-1:] != [step]:
                more_bytes = allocated_bytes - self._looks.live_bytes[-1]
                if more_bytes < 0 and not self._pace.is_over:
                    return  # another point of a cycle: this look could not be compared
                if more_bytes > 0:
                    self._look(step, allocated_bytes)
            self._search(upwards=self._first_search is not None)

    def poll_on_agent_thread(self) -> Receipt | None:
        """The receipt, once the looks are over: source files are read for it."""
        if self._found is None:
            return None
        groups, held = self._found
        find_storing_lines(holder for each in held for holder in each.holders)
        find_storing_lines(each.holder for each in self._idle)
        self.is_on = False
        complete = self._looks.count >= self._params.looks and not self._notes
        report = self._report(groups, held, complete=complete)
        return Receipt("done", message=self._words(groups), result=report)

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
        self._looks.take(self._device.segments(), step, allocated_bytes, _collected())
        took_ns = time.perf_counter_ns() - start_ns
        self._pace.looked(allocated_bytes, took_ns)
        self._add_cost_ns(took_ns)

    def _may_search(self, now_ns: int) -> bool:
        """Whether to search now: when it is within the budget, or has waited for long."""
        is_last = self._pace.is_over or self._looks.are_full
        if self._since_ns is None:
            return is_last
        if self._first_search is None:
            expected_ns, most_ns = BY_NAME_NS, MOST_WAIT_BY_NAME_NS
        else:
            expected_ns, most_ns = max(UPWARDS_NS, self._by_name_ns), MOST_WAIT_NS
        # Of memory that falls now and then, what holds it must be seen before it falls again.
        has_waited = now_ns - self._since_ns >= most_ns or self._looks.falls > 0
        return has_waited or is_last or self._pace.may_take(expected_ns, now_ns)

    def _search(self, *, upwards: bool) -> None:
        """Look for holders: by name first, which mostly explains all that grows."""
        start_ns = time.perf_counter_ns()
        groups = self._looks.groups()[:MAX_GROUPS]
        search = GroupHolders(self._device.storage, self._looks.births(), self._limit_s)
        held = search.find(groups, self._optimizers(), upwards=upwards)
        took_ns = time.perf_counter_ns() - start_ns
        self._pace.spent_ns += took_ns
        self._add_cost_ns(took_ns)
        is_last = upwards or self._recording.why_ended != ""
        if not is_last and any(each.missing for each in held):
            self._first_search, self._by_name_ns = search, took_ns
            self._since_ns = time.perf_counter_ns()
            return
        before = self._first_search
        graphs = [] if before is None else search.graphs.grown_since(before.graphs)
        for each in held:
            name_missing(each, graphs, self._shared.addresses, was_searched=search.saw_all)
        self._notes += search.notes
        self._idle = search.idle
        self._stop()
        # The agent's own thread puts it into words.
        self._found = (groups, held)

    @property
    def _limit_s(self) -> float:
        return self._params.max_ms / 1e3

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
        looks = self._looks.compared()
        sources = self._looks.blocks.sources
        note = self._recording.note
        return growth_report(
            [
                group_report(group, sources[group.source], each)
                for group, each in zip(groups, held, strict=True)
            ],
            steps=[self._looks.steps[look] for look in looks],
            live_bytes=[self._looks.live_bytes[look] for look in looks],
            spent_ns=self._pace.spent_ns,
            steps_watched=self._pace.steps,
            garbage=garbage_report(groups, held),
            host_groups=(),
            held=[idle_report(each) for each in self._idle],
            notes=[*([note] if note else []), *self._notes],
            complete=complete,
        )


def _collected() -> int:
    """Objects that Python's collector has freed so far."""
    return sum(int(age["collected"]) for age in gc.get_stats())
