"""What each command does, and the receipt that it leaves."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import asdict

from vramscope.collectors.allocator import Layout, flatten
from vramscope.commands.cache_plan import CachePlan, plan_empty_cache
from vramscope.devices.device import Device
from vramscope.size_text import size_text
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import CONFLICT, VramscopeError

_NO_COUNTERS: Final = "the allocator has no counters yet: this process has not used the device"

_MEASURED: Final = Layout(
    (
        "reserved_bytes.all.current",
        "allocated_bytes.all.current",
        "active_bytes.all.current",
        "inactive_split_bytes.all.current",
    )
)

Measures = dict[str, Any]


class CommandHandlers:
    """Runs commands against one device, by name. Raises what goes wrong.

    The caller picks the thread and the moment; see ``CommandSpec.place``.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._run: dict[str, Callable[[bool], Receipt]] = {
            "empty_cache": self._empty_cache,
            "gc_collect": self._gc_collect,
            "empty_cache+gc_collect": self._empty_cache_and_gc_collect,
            "memory_summary": self._memory_summary,
            "stats": self._stats,
            "reset_peaks": self._reset_peaks,
        }

    @property
    def names(self) -> list[str]:
        """Commands that can be run."""
        return list(self._run)

    def busy_reason(self) -> str | None:
        """Why no command may touch the device at this moment."""
        return self._device.busy_reason()

    def run(self, name: str, *, dry_run: bool) -> Receipt:
        """Run a command of :attr:`names` and return its receipt, ``took_s`` filled in.

        Raises:
            VramscopeError: ``conflict``, there is nothing to run it on.
            Exception: whatever the device raises.
        """
        start_s = time.perf_counter()
        receipt = self._run[name](dry_run)
        receipt.took_s = time.perf_counter() - start_s
        receipt.dry_run = dry_run
        return receipt

    def _empty_cache(self, dry_run: bool) -> Receipt:
        before = self._measure()
        plan = plan_empty_cache(self._device.segments())
        if dry_run:
            return _plan_receipt(before, plan, "")
        self._device.empty_cache()
        return self._receipt(before, f"{size_text(plan.stranded_bytes)} stayed stranded.")

    def _empty_cache_and_gc_collect(self, dry_run: bool) -> Receipt:
        before = self._measure()
        if dry_run:
            plan = plan_empty_cache(self._device.segments())
            more = " What garbage collection would free besides is not known in advance."
            return _plan_receipt(before, plan, more)
        collected = gc.collect()
        # Only now: what the collection has freed decides which segments can go.
        plan = plan_empty_cache(self._device.segments())
        self._device.empty_cache()
        stayed = f"{size_text(plan.stranded_bytes)} stayed stranded."
        return self._receipt(before, f"{stayed} {collected} unreachable objects collected.")

    def _gc_collect(self, dry_run: bool) -> Receipt:
        del dry_run  # refused before: this command has none
        stats = self._device.memory_stats()
        before: Measures = {} if stats is None else self._measure()
        collected = gc.collect()
        text = f"Collected {collected} unreachable objects"
        if stats is None:
            return Receipt("done", message=f"{text}.", result={"collected": collected})
        after = self._measure()
        freed_bytes = _fall(before, after, "allocated_bytes")
        text += f"; allocated fell by {size_text(freed_bytes)}, which stays cached."
        result = {"collected": collected, "freed_bytes": freed_bytes}
        return Receipt(
            "done",
            before=before,
            after=after,
            returned_bytes=_fall(before, after, "reserved_bytes"),
            message=text,
            result=result,
        )

    def _memory_summary(self, dry_run: bool) -> Receipt:
        del dry_run
        text = self._device.memory_summary()
        if not text:
            raise VramscopeError(CONFLICT, _NO_COUNTERS)
        return Receipt("done", message="PyTorch's memory summary.", result=text)

    def _stats(self, dry_run: bool) -> Receipt:
        del dry_run
        stats = self._device.memory_stats()
        if stats is None:
            raise VramscopeError(CONFLICT, _NO_COUNTERS)
        counters = flatten(stats)
        return Receipt("done", message=f"{len(counters)} counters.", result=counters)

    def _reset_peaks(self, dry_run: bool) -> Receipt:
        del dry_run
        before = self._measure()
        self._device.reset_peaks()
        return Receipt(
            "done",
            before=before,
            after=self._measure(),
            message="Every peak counter is set to its current value; the job sees that too.",
        )

    def _measure(self) -> Measures:
        stats = self._device.memory_stats()
        if stats is None:
            raise VramscopeError(CONFLICT, _NO_COUNTERS)
        values = _MEASURED.values(stats)
        measures: Measures = {
            key.partition(".")[0]: None if value == UNKNOWN else value
            for key, value in zip(_MEASURED.keys, values, strict=True)
        }
        free_bytes = self._device.device_memory().free_bytes
        measures["device_free_bytes"] = None if free_bytes == UNKNOWN else free_bytes
        return measures

    def _receipt(self, before: Measures, more: str) -> Receipt:
        after = self._measure()
        returned_bytes = _fall(before, after, "reserved_bytes")
        return Receipt(
            "done",
            before=before,
            after=after,
            returned_bytes=returned_bytes,
            message=f"Returned {size_text(returned_bytes)} to the device. {more}",
        )


def _plan_receipt(before: Measures, plan: CachePlan, more: str) -> Receipt:
    after = dict(before)
    for name, sign in (("reserved_bytes", -1), ("device_free_bytes", 1)):
        if before[name] is not None:
            after[name] = before[name] + sign * plan.returnable_bytes
    message = (
        f"Would return {size_text(plan.returnable_bytes)} in {plan.returnable_segments} of "
        f"{plan.segments} segments; {size_text(plan.stranded_bytes)} would stay stranded."
    )
    return Receipt(
        "done",
        before=before,
        after=after,
        returned_bytes=plan.returnable_bytes,
        message=message + more,
        result=asdict(plan),
    )


def _fall(before: Measures, after: Measures, name: str) -> int | None:
    if before[name] is None or after[name] is None:
        return None
    fall: int = before[name] - after[name]
    return fall
