"""Looks at the live blocks over some steps, then says what grows and what holds it.

The lines are known before it is sure what holds what they allocate: where that takes longer, there
is an answer with the lines first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from vramscope.devices.caching_allocator import counter_bytes, current_bytes
from vramscope.growth.group_holders import GroupHolders, Held, name_missing
from vramscope.growth.groups import Group
from vramscope.growth.idle_tensors import IdleGroup, note_writes
from vramscope.growth.looks import LookedAt, Looks, collected_objects
from vramscope.growth.pace import LookPace
from vramscope.growth.recording import StackRecording
from vramscope.growth.report import (
    garbage_report,
    group_report,
    growth_report,
    growth_words,
    idle_report,
)
from vramscope.growth.search_plan import SearchPlan
from vramscope.growth.shared_storages import SharedStorages
from vramscope.growth.tensor_writes import WATCHED_STEPS
from vramscope.growth.waiting_blocks import WaitingBlocks
from vramscope.history.no_collection import no_collection
from vramscope.holders.storing_line import find_storing_lines
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import ExplainGrowthParams

MAX_GROUPS: Final = 12
WAITING_EVERY: Final = 4
"""While a search waits, memory is looked at no more often: asking costs something, too."""

_Found: TypeAlias = "tuple[list[Group], list[Held]]"


class GrowthWatch:
    """One answer to the question what grows. Implements ``Ongoing``; begins at once.

    Args:
        device: is looked at.
        recording: has the stacks recorded.
        params: how to look.
        issued_by: id of the command.
        add_cost_ns: told what the looks cost.
        optimizers: those that step the job's parameters.
        on_answer: called on the training thread when there is something to be told.
    """

    def __init__(
        self,
        device: LookedAt,
        recording: StackRecording,
        params: ExplainGrowthParams,
        issued_by: str,
        add_cost_ns: Callable[[int], object],
        optimizers: Callable[[], list[Any]] = list,
        on_answer: Callable[[], object] = bool,
    ) -> None:
        self._device = device
        self._recording = recording
        self._params = params
        self._add_cost_ns = add_cost_ns
        self._optimizers = optimizers
        self._on_answer = on_answer
        self.is_on = True
        """Whether it goes on."""
        self._issued_by = issued_by
        self._plan = SearchPlan(round(params.max_ms * 1e6))
        self._first_search: GroupHolders | None = None
        self._found: _Found | None = None
        self._so_far: _Found | None = None
        """What a search has found that was not the last one, until it is told."""
        self._idle: list[IdleGroup] = []
        self._steps_since = 0
        """Since all was found."""
        self._notes: list[str] = []
        self._shared = SharedStorages()
        self._waiting = WaitingBlocks()
        max_steps = max(params.max_steps, params.every * (params.looks + 1))
        self._pace = LookPace(params.every, max_steps, time.perf_counter_ns())
        start_ns = time.thread_time_ns()
        self._shared.install()
        self._looks = self._begin(falls=0)
        self._spent(time.thread_time_ns() - start_ns)

    @property
    def progress(self) -> str:
        """How far it is."""
        return f"{self._looks.blocks.looks} looks in {self._pace.steps} steps"

    def owed_ns(self, now_ns: int) -> int:
        """For how long the job must be left alone, so that all of it was within the share.

        Args:
            now_ns: the time (``time.perf_counter_ns``).
        """
        return self._pace.owed_ns(now_ns)

    def poll(self, step: int) -> Receipt | None:
        """A step has ended."""
        if self._found is None:
            start_ns = time.thread_time_ns()
            # What is made here would have Python collect just what is to be seen.
            with no_collection():
                self._step_ended(step, time.perf_counter_ns())
            self._spent(time.thread_time_ns() - start_ns)
        else:
            self._steps_since += 1
        return None

    def _begin(self, falls: int) -> Looks:
        """Record, and see what there is already."""
        self._recording.start(self._issued_by, self._allocations())
        is_begun = False
        try:
            with no_collection():
                looks = Looks(self._device.segments(), self._params.looks, falls)
            is_begun = True
        finally:
            if not is_begun:  # nobody would ever end it
                self._stop()
        return looks

    @property
    def _is_last(self) -> bool:
        """Whether there will be no further look."""
        is_over = self._pace.is_over and self._looks.blocks.looks > 0
        return is_over or self._looks.are_full

    def _has_fallen(self) -> bool:
        collected = collected_objects()
        if not self._looks.may_have_fallen(collected):
            return False
        return self._looks.saw(self._allocated_bytes(), collected)

    def _begin_anew(self) -> None:
        """What was looked at is gone, and what was to be searched for."""
        self._first_search = self._so_far = None
        self._plan.forget()
        self._pace.begin_anew()
        if not self._recording.is_on:
            self._looks = self._begin(self._looks.falls)

    def _step_ended(self, step: int, now_ns: int) -> None:
        self._pace.step_ended()
        ended = self._recording.why_ended
        if ended:
            self._notes.append(f"the recording ended early: {ended}")
            self._search(step, self._plan.limit_ns(0, may_wait=False), is_last=True)
            return
        may_pass = self._plan.is_wanted and not self._limit_ns(now_ns)
        if may_pass and self._pace.steps % WAITING_EVERY:
            return
        if not self._is_last:
            if self._has_fallen():
                self._begin_anew()
            if not self._plan.is_wanted and self._pace.may_look(now_ns):
                self._look_if_wanted(step)
        if self._plan.is_wanted or self._is_last:
            # Stacks have told what they can, and cost something at each allocation.
            self._end_recording()
            limit_ns = self._limit_ns(now_ns)
            if limit_ns:
                self._search(step, limit_ns)

    def _limit_ns(self, now_ns: int) -> int:
        """How long to search now; 0 is not yet."""
        # Of memory that falls now and then, what holds it must be seen before it falls again.
        may_wait = not (self._plan.is_wanted and self._looks.falls)
        return self._plan.limit_ns(self._pace.left_ns(now_ns), may_wait=may_wait)

    def poll_on_agent_thread(self) -> Receipt | None:
        """The receipt, once the looks are over: source files are read for it."""
        if self._found is None:
            return self._told_so_far()
        groups, held = self._found
        # Of what grows nobody waits to be told.
        if self._idle and not groups and self._steps_since < WATCHED_STEPS:
            return None
        return self._told(groups, held)

    def _told_so_far(self) -> Receipt | None:
        """The lines, while it is not sure yet what holds what they allocate."""
        found, self._so_far = self._so_far, None
        if found is None:
            return None
        groups, held = found
        # Whoever holds a few samples is not who holds what grows.
        named = [Held(each.tensors) for each in held]
        report = self._report(groups, named, complete=False, holders_follow=True)
        message = f"{growth_words(groups, self.progress)} What holds it follows."
        return Receipt("running", message=message, result=report)

    def _told(self, groups: list[Group], held: list[Held]) -> Receipt:
        note_writes(self._idle, self._steps_since)
        find_storing_lines(holder for each in held for holder in each.holders)
        find_storing_lines(each.holder for each in self._idle)
        self.is_on = False
        complete = self._looks.count >= self._params.looks and not self._notes
        report = self._report(groups, held, complete=complete)
        return Receipt("done", message=growth_words(groups, self.progress), result=report)

    def cancel(self, reason: str) -> Receipt:
        """Stop looking, and tell what was seen, without the holders: any thread."""
        self._stop()
        self.is_on = False
        if self._found is not None:
            return self._told(*self._found)
        self._notes.append(reason)
        report = self._report([], [], complete=False)
        return Receipt("failed", message=f"{reason}; {self.progress}", result=report)

    def _look_if_wanted(self, step: int) -> None:
        stats = self._device.memory_stats()
        allocated_bytes = current_bytes(stats, "allocated_bytes")
        has_risen = self._pace.has_risen(allocated_bytes)
        waits = self._waiting.are_more(stats)
        if not has_risen and not waits:
            return
        start_ns = time.thread_time_ns()
        segments = self._device.segments()
        if waits:
            self._waiting.take(segments)
        if has_risen:
            self._looks.take(segments, step, allocated_bytes, collected_objects())
            self._plan.is_wanted = self._looks.show_growth()
            self._pace.looked(allocated_bytes, time.thread_time_ns() - start_ns)

    def _end_recording(self) -> None:
        if self._recording.is_on:
            self._pace.spent_ns += self._recording.cost_ns(self._allocations())
            self._recording.stop()

    def _search(self, step: int, limit_ns: int, *, is_last: bool = False) -> None:
        """Look for holders: by name first, which mostly explains all that grows."""
        start_ns = time.thread_time_ns()
        is_upwards = self._plan.is_upwards
        if self._looks.steps[-1:] != [step]:
            self._looks.blocks.drop_gone(self._device.segments())
        groups = self._looks.groups()[:MAX_GROUPS]
        if self._plan.is_wanted and not groups and not self._is_last and not is_last:
            self._looks.falls += 1  # and has risen again meanwhile
            self._begin_anew()
            return
        search = GroupHolders(self._device.storage, self._looks.births(), limit_ns / 1e9)
        held = search.find(groups, self._optimizers(), upwards=is_upwards)
        took_ns = time.thread_time_ns() - start_ns
        is_left = any(each.missing for each in held)
        is_over = self._plan.searched(took_ns, limit_ns, ran_out=search.ran_out, is_left=is_left)
        if not is_over and not is_last:
            if self._plan.is_upwards and not is_upwards:
                self._first_search = search
            if not is_upwards:
                self._so_far = groups, held
                self._on_answer()  # who comes too early for it comes again soon
            return
        before = self._first_search
        graphs = [] if before is None else search.graphs.grown_since(before.graphs)
        for each in held:
            name_missing(each, graphs, self._shared.addresses, was_searched=search.saw_all)
        self._notes += search.notes
        self._idle = search.idle
        self._stop()
        # The agent's own thread puts it into words.
        self._found, self._so_far = (groups, held), None
        self._on_answer()

    def _spent(self, took_ns: int) -> None:
        self._pace.spent_ns += took_ns
        self._add_cost_ns(took_ns)

    def _allocated_bytes(self) -> int:
        return current_bytes(self._device.memory_stats(), "allocated_bytes")

    def _allocations(self) -> int:
        """How many there have been."""
        return counter_bytes(self._device.memory_stats(), "allocation", "allocated")

    def _stop(self) -> None:
        self._shared.remove()
        self._recording.stop()

    def _report(
        self,
        groups: Sequence[Group],
        held: Sequence[Held],
        *,
        complete: bool,
        holders_follow: bool = False,
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
            waiting=self._waiting.groups,
            holders_follow=holders_follow,
        )
