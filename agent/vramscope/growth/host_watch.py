"""Compares host memory at the ends of two steps: tensors on the host, and graphs of autograd."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from vramscope.growth.group_holders import GroupHolders
from vramscope.growth.host_tensors import HostGroup, HostTensors, grown_graphs
from vramscope.growth.pace import LookPace
from vramscope.growth.report import growth_report, host_report
from vramscope.history.no_collection import no_collection
from vramscope.holders.storing_line import find_storing_lines
from vramscope.tensors.census import Storage
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import ExplainGrowthParams

LEAST_STEPS: Final = 8
"""So far apart are the two, at least."""


class HostWatch:
    """One answer to the question what grows on the host. Implements ``Ongoing``; begins at once.

    Args:
        storage: finds a tensor's storage on the device: those are not on the host.
        params: how to look.
        step: steps finished when it begins.
        add_cost_ns: told what the looks cost.
    """

    def __init__(
        self,
        storage: Storage,
        params: ExplainGrowthParams,
        step: int,
        add_cost_ns: Callable[[int], object],
    ) -> None:
        self._storage = storage
        self._params = params
        self._add_cost_ns = add_cost_ns
        self.is_on = True
        """Whether it goes on."""
        self._steps = [step]
        self._wanted = max(LEAST_STEPS, params.every * params.looks)
        self._pace = LookPace(self._wanted, self._wanted, time.perf_counter_ns())
        self._found: list[HostGroup] | None = None
        self._notes: list[str] = []
        self._first = self._search(HostTensors())

    @property
    def progress(self) -> str:
        """How far it is."""
        return f"{min(self._pace.steps, self._wanted)} of {self._wanted} steps"

    def owed_ns(self, now_ns: int) -> int:
        """For how long the job must be left alone, so that all of it was within the share.

        Args:
            now_ns: the time (``time.perf_counter_ns``).
        """
        return self._pace.owed_ns(now_ns)

    def poll(self, step: int) -> Receipt | None:
        """A step has ended."""
        self._pace.step_ended()
        # The second search takes about as long as the first one.
        is_time = self._pace.left_ns(time.perf_counter_ns()) >= self._pace.spent_ns
        if self._found is None and self._pace.is_over and is_time:
            self._steps.append(step)
            last = self._search(self._first.host)
            self._found = last.host.grown_since(self._first.host)
            self._found += grown_graphs(last.graphs, self._first.graphs)
        return None

    def poll_on_agent_thread(self) -> Receipt | None:
        """The receipt, once both looks were taken: source files are read for it."""
        if self._found is None:
            return None
        find_storing_lines(group.holder for group in self._found)
        self.is_on = False
        names = [group.holder.chain[0] for group in self._found if group.holder.chain]
        text = (
            f"Grows on the host: {', '.join(names[:3])}" if names else "Nothing grows that is known"
        )
        return Receipt("done", message=f"{text}: {self.progress}.", result=self._report())

    def cancel(self, reason: str) -> Receipt:
        """Look no more. Any thread."""
        self.is_on = False
        self._notes.append(reason)
        return Receipt("failed", message=f"{reason}; {self.progress}", result=self._report())

    def _search(self, before: HostTensors) -> GroupHolders:
        start_ns = time.thread_time_ns()
        search = GroupHolders(self._storage, {}, self._params.max_ms / 1e3)
        with no_collection():
            search.find([], upwards=False, host=before)
        self._notes += search.notes
        took_ns = time.thread_time_ns() - start_ns
        self._pace.spent_ns += took_ns
        self._add_cost_ns(took_ns)
        return search

    def _report(self) -> dict[str, Any]:
        return growth_report(
            [],
            steps=self._steps,
            live_bytes=(),
            spent_ns=self._pace.spent_ns,
            steps_watched=self._pace.steps,
            garbage={},
            host_groups=[host_report(group) for group in self._found or ()],
            held=(),
            notes=self._notes,
            complete=self._found is not None and not self._notes,
        )
