"""The status that goes out once a second: rate, cost, queues, what is degraded, the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from vramscope.collectors.self_cost import SelfCost
from vramscope.guard import error_count, errors_by_place
from vramscope.notices import Notices
from vramscope.outbox.losses import Losses
from vramscope.sampling.cost_budget import CostBudget
from vramscope_protocol.account import AgentAccount, MemoryPart, ProcessMemory
from vramscope_protocol.messages import AgentStatus


class StatusOutbox(Protocol):
    """What a status tells of the outbox."""

    @property
    def memory_bytes(self) -> int:
        """Bytes that wait in memory."""
        ...

    @property
    def spool_bytes(self) -> int:
        """Bytes that wait on disk."""
        ...

    @property
    def queued_messages(self) -> int:
        """Messages in memory that no server has acknowledged."""
        ...

    @property
    def losses(self) -> Losses:
        """What was dropped."""
        ...


class StatusReport:
    """Makes the status of an agent. Sampler thread.

    Args:
        budget: the rate, and what it may cost.
        self_cost: what the agent has cost.
        outbox: what waits and what was dropped.
        notices: what is degraded.
        start_ns: monotonic time of attach.
        processes: the processes on the device, as last known.
        outside: what this process uses outside of PyTorch's allocator, as last known.
    """

    def __init__(
        self,
        budget: CostBudget,
        self_cost: SelfCost,
        outbox: StatusOutbox,
        notices: Notices,
        start_ns: int,
        *,
        processes: Callable[[], list[ProcessMemory]] = list,
        outside: Callable[[], list[MemoryPart]] = list,
    ) -> None:
        self._budget = budget
        self._self_cost = self_cost
        self._outbox = outbox
        self._notices = notices
        self._start_ns = start_ns
        self._processes = processes
        self._outside = outside
        self._last: tuple[int, int] | None = None

    def make(self, now_ns: int, samples: int) -> AgentStatus:
        """The status as it is now.

        Args:
            now_ns: monotonic time.
            samples: rows taken since attach.
        """
        cpu_ns = self._self_cost.cpu_ns()
        # The first status comes at once, to show that the agent is there: what it has cost so
        # far is the loading of libraries, which is not what watching costs.
        last_ns, last_cpu_ns = self._last or (0, cpu_ns)
        self._last = (now_ns, cpu_ns)
        self._note_rate()
        return AgentStatus(
            rate_hz=self._budget.rate_hz,
            cost_fraction=(cpu_ns - last_cpu_ns) / (now_ns - last_ns),
            outbox_bytes=self._outbox.memory_bytes,
            spool_bytes=self._outbox.spool_bytes,
            guard_errors=error_count(),
            notes=self._notices.texts(),
            account=self._account(now_ns, samples),
            processes=self._processes(),
            outside=self._outside(),
        )

    def _account(self, now_ns: int, samples: int) -> AgentAccount:
        lost = self._outbox.losses.message()
        lost_by_reason = Counter(lost.samples) + Counter(lost.steps) + Counter(lost.messages)
        return AgentAccount(
            elapsed_us=(now_ns - self._start_ns) // 1000,
            cpu_us=self._self_cost.parts_us(),
            turns=self._self_cost.turns,
            gil_us=self._self_cost.held_ns // 1000,
            samples=samples,
            queued_messages=self._outbox.queued_messages,
            wanted_rate_hz=self._budget.wanted_rate_hz,
            budget_fraction=max(0.0, self._budget.fraction),
            lost=dict(lost_by_reason),
            errors=errors_by_place(),
        )

    def _note_rate(self) -> None:
        budget = self._budget
        if budget.rate_hz < budget.wanted_rate_hz:
            share = f"{budget.fraction * 100:.3g}% of a core"
            self._notices.note(
                "budget", f"sampling at {budget.rate_hz:.1f} Hz to stay within {share}"
            )
        else:
            self._notices.clear("budget")
