"""Counts training steps, writes one exact row at the end of each, and lets commands run there.

Wiring (agent.py): construct with the device, the counters and the outbox; ``install`` on attach;
give the tracker to the sampler, which calls ``poll`` and ``flush``; ``remove`` on detach.

What ends a step, in order of trust: the user's own ``vramscope.step()``; optimizer steps; what a
framework's callback says; batches fetched from a ``DataLoader`` when there is none of these. A
step that ``GradScaler`` skips is no optimizer step, and does not count.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from vramscope.batching.graph_watch import GraphWatch
from vramscope.batching.loader_watch import LoaderWatch
from vramscope.collectors.allocator import AllocatorCounters
from vramscope.collectors.self_cost import CpuMeter, SelfCost
from vramscope.devices.device import Device
from vramscope.notices import Notices
from vramscope.peaks.step_peaks import StepPeaks
from vramscope.phases.phases import Phases
from vramscope.sampling.clock import Clock
from vramscope.sampling.rows import Row, RowSink
from vramscope.steps.autocast_cache import AutocastCache
from vramscope.steps.backward_hook import BackwardHook
from vramscope.steps.boundaries import BackwardOptimizers, OptimizerCycle
from vramscope.steps.fetches import Fetches
from vramscope.steps.step_columns import StepColumns
from vramscope.steps.step_rows import StepRows
from vramscope.steps.torch_hooks import LOADER_MODULE, TorchHooks

BATCH_FALLBACK_S: Final = 30.0
"""Without any optimizer step for this long after torch's DataLoader is there, batches count."""

SURPLUS_STEPS: Final = 3
"""After so many steps of a framework in a row that were several optimizer steps, it counts."""

METERED_STEPS: Final = 8
"""The CPU time of every such step end is asked for, and counted for all since the last one: asking
takes a twentieth of what is measured."""

TOLD_STEPS: Final = 8
"""Who listens to optimizers is told of one that steps on again after so many steps."""

_MAX_OPTIMIZERS: Final = 1_000
"""A job may step one for each parameter."""

Source = Literal["optimizer", "framework", "batch", "user"]


class StepTracker:
    """Knows which step the job is in.

    Args:
        device: read at every boundary.
        counters: which counters a row has.
        outbox: takes the rows.
        clock: for times and durations.
        notices: told when steps are counted in an unusual way.
        self_cost: charged with the time that the hooks take.
        phases: the phase that the process is in.
        run_commands: called at every boundary, on the training thread, with the step's number.
        on_boundary: called before the row is taken, on the training thread.
        peaks: the peaks of each step; without it a row has none of its own.
    """

    def __init__(
        self,
        device: Device,
        counters: AllocatorCounters,
        outbox: RowSink,
        *,
        clock: Clock,
        notices: Notices,
        self_cost: SelfCost,
        phases: Phases,
        run_commands: Callable[[int], None],
        on_boundary: Callable[[], None] | None = None,
        peaks: StepPeaks | None = None,
    ) -> None:
        self._clock = clock
        self._notices = notices
        self._self_cost = self_cost
        self._run_commands = run_commands
        self._on_boundary = on_boundary
        self._parts = None if peaks is None else peaks.parts
        self._rows = StepRows(device, counters, outbox, clock, notices, peaks)
        self._phases = phases
        self._fetches = Fetches(phases, clock, self_cost)
        self._hooks = TorchHooks(
            self._after_optimizer_step,
            self._before_fetch,
            self._after_fetch,
            None if self._parts is None else self._before_optimizer_step,
            self._fetched,
        )
        self._backward_hook = BackwardHook(
            self.is_training_thread,
            self._backward_begins,
            self._backward_ended,
            self._is_backward_wanted,
        )
        self._autocast = AutocastCache(
            device.memory_stats, self.is_training_thread, self_cost.add_hook_ns
        )
        self._rows.add_columns(self._autocast)
        self.loaders = LoaderWatch(phases.name, self_cost.add_hook_ns)
        """Which loaders training reads from."""
        self._graphs = GraphWatch()
        self.has_graphs = self._graphs.has_graphs
        self._rows.add_columns(self.loaders)
        self._backward_listeners: list[tuple[Callable[[], None], Callable[[], bool]]] = []
        self._optimizer_listeners: list[Callable[[Any], None]] = []
        self._told_at: dict[int, int] = {}
        self._has_backward = False
        self._source: Source | None = None
        self._counts_batches = False
        self._framework_step = 0
        self._surplus = 0
        self._cycle = OptimizerCycle()
        self._backward = BackwardOptimizers()
        self._loader_since_ns: int | None = None
        # Taken without waiting: garbage collection may step an optimizer inside our own hook.
        self._at_boundary = threading.Lock()
        self.step = 0
        """Steps finished so far."""

    def listen_backward(self, listener: Callable[[], None], is_wanted: Callable[[], bool]) -> None:
        """Before ``install``: be called when the first backward pass of a step begins.

        Args:
            listener: called, if anybody wants to know of that pass.
            is_wanted: whether this one does; asked when a pass begins.
        """
        self._backward_listeners.append((listener, is_wanted))

    def listen_optimizer(self, listener: Callable[[Any], None]) -> None:
        """Before ``install``: be called with an optimizer after a step of it, every few steps."""
        self._optimizer_listeners.append(listener)

    def add_columns(self, columns: StepColumns) -> None:
        """Before ``install``: add columns to the rows."""
        self._rows.add_columns(columns)

    @property
    def counts_alike(self) -> bool:
        """Whether every rank counts the same steps. Batches count from a certain time on, which is
        in another step on each."""
        return self._source != "batch"

    @property
    def peak_bytes(self) -> int:
        """Highest allocated bytes of the step that ended last."""
        return self._rows.peak_bytes

    def rises(self) -> bool:
        """Whether memory rises fast with each step; told twice of each rise."""
        return self._rows.rise.take()

    def is_training_thread(self) -> bool:
        """Whether the calling thread steps the optimizers; the main thread until one has."""
        return self._fetches.is_training_thread()

    def install(self) -> None:
        """Hook the optimizers, now or when the job imports torch."""
        self._hooks.install()
        if self._parts is not None or self._backward_listeners:
            self._backward_hook.install()
        self._autocast.install()
        self._graphs.install()
        self._fetches.saves.poll()

    def remove(self) -> None:
        """Take every hook out of PyTorch."""
        self._hooks.remove()
        self._backward_hook.remove()
        self._autocast.remove()
        self._graphs.remove()
        self._fetches.saves.remove()

    def forget_after_fork(self) -> None:
        """In a forked child: be idle from now on, without taking a lock."""
        self._hooks.forget_after_fork()
        self._backward_hook.forget_after_fork()
        self._autocast.forget_after_fork()
        self._graphs.forget_after_fork()
        self._fetches.saves.forget_after_fork()

    def poll(self) -> None:
        """Look after the hooks; on the sampler thread."""
        self._hooks.poll()
        if self._hooks.is_installed:
            self._fetches.saves.poll()
        if self._source is not None or LOADER_MODULE not in sys.modules:
            return
        now_ns = self._clock.monotonic_ns()
        if self._loader_since_ns is None:
            self._loader_since_ns = now_ns
        elif now_ns - self._loader_since_ns > BATCH_FALLBACK_S * 1e9:
            self._counts_batches = True

    def waiting_rows(self) -> list[Row]:
        """Rows that were not flushed yet, with their fields; any thread."""
        return self._rows.waiting()

    def flush(self) -> None:
        """Hand the rows to the outbox; on the sampler thread."""
        self._rows.flush()

    def log(self, values: Mapping[str, Any]) -> None:
        """Add the user's numbers to the row of the step that ends next."""
        self._rows.log(values)

    def mark_step(self) -> None:
        """The user says that a step has ended. From the first call on, only the user counts."""
        first = self._source != "user"
        counted = first and self._source == "optimizer" and not self._backward.is_pending()
        self._count_by("user")
        self._fetches.optimizer_stepped()
        # The optimizer's own hook has counted this very step already.
        if not counted:
            self._end_step()

    def mark_framework_step(self) -> None:
        """A framework says that an optimizer step has ended: heard where no hook counts it.

        An optimizer that the hook sees counts for itself, unless it steps several times for each
        step of the framework (sharded ones step part by part). Then the framework counts.
        """
        counted, self._framework_step = self.step - self._framework_step, self.step
        if self._source == "user":
            return
        if self._source == "optimizer":
            if self._backward.is_pending() and not _in_backward():
                self._end_step()
                self._framework_step = self.step
                return
            self._surplus = self._surplus + 1 if counted > 1 else 0
            if self._surplus >= SURPLUS_STEPS:
                self._count_by("framework")
                self._notices.note(
                    "steps",
                    "the optimizer steps several times a step: the framework's steps count",
                )
            return
        if self._source != "framework":
            self._count_by("framework")
        self._fetches.optimizer_stepped()
        self._end_step()
        self._framework_step = self.step

    def _count_by(self, source: Source) -> None:
        if self._source != source:
            self._source = source
            self._counts_batches = source == "batch"
            self._notices.clear("steps")

    def _is_backward_wanted(self) -> bool:
        """Whether a pass that begins now is to be told; what is not is the step's first all the
        same."""
        if self._parts is not None and self._parts.is_splitting:
            return True
        if self._has_backward:
            return False
        for _, is_wanted in self._backward_listeners:
            if is_wanted():
                return True
        self._has_backward = True
        return False

    def _backward_begins(self) -> None:
        # The boundary first: what listeners do is not the forward's.
        if self._parts is not None:
            self._parts.backward_begins()
        if not self._has_backward:
            self._has_backward = True
            for listener, _ in self._backward_listeners:
                listener()

    def _backward_ended(self) -> None:
        if self._parts is not None:
            self._parts.backward_ended()

    def _before_optimizer_step(self, optimizer: Any) -> None:
        del optimizer
        parts = self._parts
        if parts is None or not parts.is_splitting:
            return
        if self.is_training_thread() and not _in_backward():
            parts.optimizer_begins()

    def _after_optimizer_step(self, optimizer: Any) -> None:
        step = self.step
        key = id(optimizer)
        if step - self._told_at.get(key, -TOLD_STEPS) >= TOLD_STEPS:
            self._tell_listeners(optimizer, key)
        self._count_optimizer_step(optimizer)
        if step == self.step and self._parts is not None and self.is_training_thread():
            self._parts.optimizer_ended()

    def _tell_listeners(self, optimizer: Any, key: int) -> None:
        if len(self._told_at) >= _MAX_OPTIMIZERS:
            self._told_at.clear()
        self._told_at[key] = self.step
        for listener in self._optimizer_listeners:
            listener(optimizer)

    def _count_optimizer_step(self, optimizer: Any) -> None:
        is_in_backward = _in_backward()
        if not is_in_backward:
            # Else the thread may be one of autograd's own.
            self._fetches.optimizer_stepped()
        if self._source == "user" or (self._source == "framework" and self._surplus):
            return
        if self._source != "optimizer":
            self._count_by("optimizer")
        if is_in_backward:
            self._after_backward_step(optimizer)
        elif self._cycle.ends_step(id(optimizer)):
            self._end_step()

    def _after_backward_step(self, optimizer: Any) -> None:
        if self._backward.comes_round(id(optimizer)):
            # No batch was fetched in between. The step is counted here, one backward pass late;
            # commands find the device busy and wait.
            self._end_step()
            self._backward.comes_round(id(optimizer))
        if not self._hooks.sees_batches:
            self._notices.note(
                "steps",
                "the optimizer steps inside the backward pass: call vramscope.step() after it, "
                "or commands cannot run",
            )

    def _before_fetch(self, iterator: Any) -> None:
        if self._backward.is_pending() and not _in_backward():
            self._fetches.optimizer_stepped()
            self._end_step()
        elif self._counts_batches and _is_main_thread():
            if self._source is None:
                self._count_by("batch")
                self._notices.note(
                    "steps", "no optimizer step seen: batches of the DataLoader count as steps"
                )
            self._end_step()
        self._fetches.before(iterator)
        if self.is_training_thread():
            self.loaders.before(iterator)

    def _fetched(self, batch: Any) -> None:
        if self.is_training_thread():
            self.loaders.fetched(batch)

    def _after_fetch(self, iterator: Any, is_over: bool) -> None:
        del iterator
        if self.is_training_thread():
            self.loaders.after(is_over=is_over)
        self._fetches.after(is_over)

    def _end_step(self) -> None:
        if not self._at_boundary.acquire(blocking=False):
            return
        try:
            meter = None if self.step % METERED_STEPS else CpuMeter()
            self._backward.ended()
            self._has_backward = False
            if self._on_boundary is not None:
                self._on_boundary()
            self.step += 1
            phase = self._phases.step_ended(self.step)
            self._rows.append(self.step, phase, self._fetches.take_wait_us())
            if meter is not None:
                steps = METERED_STEPS if self.step > METERED_STEPS else 1
                self._self_cost.add_hook_ns(meter.end() * steps)
            # Not ours to account for: the user asked for what runs here.
            self._run_commands(self.step)
        finally:
            self._at_boundary.release()


def _in_backward() -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch._C._current_graph_task_id() != -1


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
