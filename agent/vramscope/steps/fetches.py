"""What fetching batches tells: how long training waits for data, and whether it evaluates."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from vramscope.collectors.self_cost import SelfCost
from vramscope.phases.evaluation import Evaluation
from vramscope.phases.phases import Phases
from vramscope.phases.saves import Saves
from vramscope.sampling.clock import Clock
from vramscope.steps.data_wait import TOLD_NS, DataWait

_MAX_CHARGE_NS: Final = 50_000
"""What takes longer was another thread's turn."""


class Fetches:
    """Follows the training thread from batch to batch. Other threads prefetch, and do not count.

    Args:
        phases: where phases that are recognised are entered and left.
        clock: times and durations.
        self_cost: charged with the time that the hooks take.
        evaluation: recognises evaluation.
    """

    def __init__(
        self,
        phases: Phases,
        clock: Clock,
        self_cost: SelfCost,
        evaluation: Evaluation | None = None,
    ) -> None:
        self._phases = phases
        self._clock = clock
        self._self_cost = self_cost
        self._evaluation = evaluation or Evaluation(phases)
        self._wait = DataWait()
        self.take_wait_us = self._wait.take_us
        """Microseconds waited since the last call; unknown if no batch was ever fetched."""
        self._wait_start_ns = 0
        self._thread: int | None = None
        self.saves = Saves(phases, self.is_training_thread, self._evaluation.before_save)

    def is_training_thread(self) -> bool:
        """Whether the calling thread steps the optimizers; the main thread until one has."""
        return threading.get_ident() == (self._thread or threading.main_thread().ident)

    def optimizer_stepped(self) -> None:
        """The calling thread has stepped an optimizer."""
        self._thread = threading.get_ident()
        self._evaluation.optimizer_stepped()

    def before(self, iterator: Any) -> None:
        """A ``DataLoader`` iterator is asked for its next batch."""
        if not self.is_training_thread():
            return
        begin_ns = time.perf_counter_ns()
        now_ns = self._clock.time_ns()
        if self._wait.begin(now_ns):
            self._wait_start_ns = now_ns
            self._evaluation.before_fetch(iterator, now_ns)
            self._phases.is_waiting_for_data = True
        self._charge(begin_ns)

    def after(self, is_over: bool) -> None:
        """It has it, or had none left."""
        if not self.is_training_thread():
            return
        begin_ns = time.perf_counter_ns()
        waited_ns = self._wait.end(self._clock.time_ns())
        if waited_ns is not None:
            self._phases.is_waiting_for_data = False
            if waited_ns >= TOLD_NS:
                self._phases.waited_for_data(self._wait_start_ns)
            self._evaluation.after_fetch(is_over)
        self._charge(begin_ns)

    def _charge(self, begin_ns: int) -> None:
        # Not the CPU clock of the thread: reading that costs as much as all the rest.
        spent_ns = time.perf_counter_ns() - begin_ns
        self._self_cost.add_hook_ns(min(spent_ns, _MAX_CHARGE_NS))
