"""Keeps account of the tensors that live memory belongs to, within a budget of time.

Wiring (observer.py): ``install`` on attach. The step tracker calls ``saw_optimizer`` after each
step of an optimizer, ``backward_began`` before the first backward of a step, ``take`` at its end.

A look goes through all modules and optimizers, on the training thread. Between two looks the last
numbers are repeated.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from vramscope.collectors.self_cost import SelfCost
from vramscope.guard import Attempt, report
from vramscope.sampling.clock import Clock
from vramscope.tensors.category import CODES, COLUMNS, KEPT_COLUMN
from vramscope.tensors.census import Census, Storage
from vramscope.tensors.module_scan import ModuleScan
from vramscope.tensors.modules import Modules
from vramscope.tensors.owners import Owners
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Event

SHARE: Final = 0.0005
"""Part of the training thread's time that looks may take."""

CHANGE_SHARE: Final = 0.002
"""The same when modules, optimizers or their state have come or gone since the last look."""

PROMPT_LOOKS: Final = 8
"""So many optimizers are looked at when they have stepped first, whatever it costs."""

SCAN_INTERVAL_NS: Final = 2_000_000_000
"""Between two turns of the look through all objects."""

LONGEST_INTERVAL_NS: Final = 300_000_000_000
SHORTEST_INTERVAL_NS: Final = 250_000_000
_RETRY_INTERVAL_NS: Final = 60_000_000_000
_OWNERS_WANTED_NS: Final = 30_000_000_000


class TensorAccount:
    """Bytes by category, and whose memory an address is.

    Args:
        storage: finds a tensor's storage on the watched device.
        modules: knows the modules of the job.
        current_step: steps finished so far.
        clock: for intervals.
        emit: takes the event that tells of a look through all objects.
        self_cost: charged with the looks.
    """

    names: tuple[str, ...] = (*COLUMNS, KEPT_COLUMN)
    """Columns of a step row."""

    def __init__(
        self,
        storage: Storage,
        modules: Modules,
        *,
        current_step: Callable[[], int],
        clock: Clock,
        emit: Callable[[Event], object],
        self_cost: SelfCost,
    ) -> None:
        self._storage = storage
        self._current_step = current_step
        self._clock = clock
        self._emit = emit
        self._self_cost = self_cost
        self._modules = modules
        self._scan = ModuleScan(modules) if modules.has_missed_some else None
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._values = [UNKNOWN] * len(COLUMNS)
        self._kept_bytes = UNKNOWN
        self._signature: tuple[int, ...] = ()
        self._due_ns = self._earliest_ns = 0
        self._cost_ns = 0
        self._prompt_looks = PROMPT_LOOKS
        self._owners: Owners | None = None
        self._owners_wanted_ns = 0

    def install(self) -> None:
        """See the modules that the job builds from now on."""
        self._modules.install()

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        self._modules.remove()
        self._optimizers = {}

    def forget_after_fork(self) -> None:
        """In a forked child: see nothing more."""
        self._modules.forget_after_fork()

    def saw_optimizer(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        key = id(optimizer)
        known = self._optimizers.get(key)
        if known is None or known() is not optimizer:
            self._optimizers[key] = weakref.ref(optimizer, partial(self._optimizers.pop, key))
            if self._prompt_looks:
                self._prompt_looks -= 1
                self._earliest_ns = 0

    def wants_backward(self) -> bool:
        """Whether it matters now that a backward begins."""
        return self._clock.monotonic_ns() >= self._due_ns

    def backward_began(self) -> None:
        """The first backward of a step is about to begin; on the training thread."""
        if not self.wants_backward() or self._scan or not self._seen_any():
            return
        with self._self_cost.part("census"):
            start_ns = time.perf_counter_ns()
            self._kept_bytes = UNKNOWN
            census = Census(self._storage)
            self._kept_bytes = census.count_gradients(self._modules.alive(), self._stepped())
            self._cost_ns += time.perf_counter_ns() - start_ns

    def take(self) -> Sequence[int]:
        """Values of the columns at the end of a step, on the training thread."""
        now_ns = self._clock.monotonic_ns()
        # In the backward, gradients are half there.
        if now_ns >= self._earliest_ns and self._seen_any() and not _in_backward():
            with self._self_cost.part("census", within="hooks"):
                self._look_if_due(now_ns)
        return (*self._values, self._kept_bytes)

    def latest(self) -> dict[str, int]:
        """Bytes by category as they were told last, without those that are not known."""
        values = (*self._values, self._kept_bytes)
        named = zip(self.names, values, strict=True)
        return {name: value for name, value in named if value != UNKNOWN}

    def count_now(self, storage: Storage | None = None) -> Census:
        """Count everything anew, with owners, in the middle of a step. Any thread of the job.

        Args:
            storage: finds a tensor's storage on another device than the watched one.
        """
        census = Census(self._storage if storage is None else storage, names=True)
        census.count(self._modules.alive(), self._stepped())
        return census

    def owners(self) -> Owners | None:
        """Whose memory an address is, as of the last look at it; any thread may ask.

        Asking has a fresh one made at the next look, which costs more than bytes alone.
        """
        self._owners_wanted_ns = self._clock.monotonic_ns() + _OWNERS_WANTED_NS
        return self._owners

    def _look_if_due(self, now_ns: int) -> None:
        attempt = Attempt()
        with attempt:
            self._modules.hook_at_boundary()
            optimizers = self._stepped()
            is_due = now_ns >= self._due_ns or self._needs_owners(now_ns)
            if is_due or self._signature != self._signature_of(optimizers):
                self._look(self._current_step(), optimizers, now_ns)
            else:
                # Even the question whether anything has changed is not for every short step.
                self._earliest_ns = now_ns + SHORTEST_INTERVAL_NS
        if attempt.error is not None:
            # Of no use any more, and perhaps wrong for good.
            self._values = [UNKNOWN] * len(COLUMNS)
            self._kept_bytes = UNKNOWN
            self._due_ns = self._earliest_ns = now_ns + _RETRY_INTERVAL_NS
            report("tensors", attempt.error)

    def _look(self, step: int, optimizers: list[Any], now_ns: int) -> None:
        if self._scan is not None and not self._go_on_scanning(self._scan, step, now_ns):
            return
        start_ns = time.perf_counter_ns()
        wants_owners = now_ns < self._owners_wanted_ns
        census = Census(self._storage, names=wants_owners)
        census.count(self._modules.alive(), optimizers)
        values = [census.bytes_of[code] for code in CODES]
        # With nothing there at all it is another device that the job keeps its tensors on.
        self._values = values if any(values) else [UNKNOWN] * len(CODES)
        if wants_owners:
            self._owners = Owners(census.owned, step, self._clock.time_ns())
        self._signature = self._signature_of(optimizers)
        cost_ns = self._cost_ns + time.perf_counter_ns() - start_ns
        self._cost_ns = 0
        self._due_ns = now_ns + _interval_ns(cost_ns, SHARE)
        self._earliest_ns = now_ns + _interval_ns(cost_ns, CHANGE_SHARE)

    def _go_on_scanning(self, scan: ModuleScan, step: int, now_ns: int) -> bool:
        """Whether it is over. Until then nothing is counted: half of the modules are no answer."""
        scan.go_on()
        if not scan.is_over:
            self._due_ns = self._earliest_ns = now_ns + SCAN_INTERVAL_NS
            return False
        self._scan = None
        text = f"found {scan.found:,} modules among {scan.objects:,} objects"
        text = f"{text} in {scan.took_s * 1e3:.0f} ms"
        if not scan.is_complete:
            text = f"{text}; there may be more: parameters that no optimizer steps may be missing"
        data = {
            "modules": scan.found,
            "objects": scan.objects,
            "took_us": int(scan.took_s * 1e6),
            "is_complete": scan.is_complete,
        }
        self._emit(Event(0, self._clock.time_ns(), "tensors", step, text, data))
        return True

    def _stepped(self) -> list[Any]:
        found = (ref() for ref in self._optimizers.copy().values())
        return [optimizer for optimizer in found if optimizer is not None]

    def _needs_owners(self, now_ns: int) -> bool:
        """Whether somebody has begun to look at the map, and nothing there has a name yet."""
        return self._owners is None and now_ns < self._owners_wanted_ns

    def _seen_any(self) -> bool:
        return self._scan is not None or bool(self._optimizers) or self._modules.seen > 0

    def _signature_of(self, optimizers: list[Any]) -> tuple[int, ...]:
        """Changes when modules, optimizers, parameters or state come or go. Cheap."""
        sizes = [self._modules.seen, len(optimizers)]
        for optimizer in optimizers:
            sizes.append(len(optimizer.state))
            sizes += [len(group["params"]) for group in optimizer.param_groups]
        return tuple(sizes)


def _in_backward() -> bool:
    in_backward: bool = sys.modules["torch"]._C._current_graph_task_id() != -1
    return in_backward


def _interval_ns(cost_ns: int, share: float) -> int:
    return max(SHORTEST_INTERVAL_NS, min(int(cost_ns / share), LONGEST_INTERVAL_NS))
