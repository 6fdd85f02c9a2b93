"""The commands that give memory back: ``empty_cache``, ``gc_collect`` and both."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import asdict

from vramscope.commands.cache_plan import CachePlan, plan_empty_cache
from vramscope.commands.call import Call, Handler
from vramscope.commands.measures import Measures, fall, measure
from vramscope.commands.pool_users import without_lone_pools
from vramscope.commands.stranding import Holder, holders
from vramscope.devices.device import Device
from vramscope.size_text import size_text
from vramscope.tensors.owners import Owned as OwnedStorage
from vramscope.tensors.owners import Owners
from vramscope_protocol.commands import Receipt

Owned: TypeAlias = Callable[[], "Iterable[OwnedStorage]"]
"""Counts the storages that belong to modules and optimizers, on the training thread."""


def cache_handlers(device: Device, owned: Owned = tuple) -> dict[str, Handler]:
    """The commands that give memory of a device back, by name.

    Args:
        device: whose memory.
        owned: counts whose storage lies where.
    """

    def empty(call: Call) -> Receipt:
        return _empty_cache(device, owned, call)

    def collect(call: Call) -> Receipt:
        del call
        return _gc_collect(device)

    def both(call: Call) -> Receipt:
        return _empty_cache_and_gc_collect(device, owned, call)

    return {"empty_cache": empty, "gc_collect": collect, "empty_cache+gc_collect": both}


class _Plan(NamedTuple):
    """What goes back, what stays, and who holds it."""

    cache: CachePlan
    held_by: list[Holder]

    def result(self) -> dict[str, Any]:
        return {**asdict(self.cache), "held_by": [asdict(each) for each in self.held_by]}

    def stranded_text(self, verb: str) -> str:
        plan = self.cache
        if not plan.stranded_bytes:
            return f"nothing {verb} stranded"
        plural = "s" if plan.stranded_segments > 1 else ""
        segments = f"{plan.stranded_segments} split segment{plural}"
        text = f"{size_text(plan.stranded_bytes)} {verb} stranded in {segments}"
        if not self.held_by:
            return text
        first = self.held_by[0]
        if len(self.held_by) == 1:
            return f"{text}, held by {first.what}"
        return f"{text}, most of it ({size_text(first.bytes)}) held by {first.what}"


def _plan(device: Device, owned: Owned) -> _Plan:
    segments = without_lone_pools([*device.segments()])
    plan = plan_empty_cache(segments)
    if not plan.stranded_bytes:
        return _Plan(plan, [])
    owners: list[Owners] = []

    def owner_of(address: int) -> tuple[int, str]:
        # Counted only where a block has no stack: the count goes through every module.
        if not owners:
            owners.append(Owners(owned(), 0, 0))
        return owners[0].category_of(address)

    return _Plan(plan, holders(segments, owner_of))


def _empty_cache(device: Device, owned: Owned, call: Call) -> Receipt:
    before = measure(device)
    plan = _plan(device, owned)
    if call.dry_run:
        return _plan_receipt(before, plan, "")
    device.empty_cache()
    return _receipt(device, before, plan, "")


def _empty_cache_and_gc_collect(device: Device, owned: Owned, call: Call) -> Receipt:
    before = measure(device)
    if call.dry_run:
        more = " What garbage collection would free besides is not known in advance."
        return _plan_receipt(before, _plan(device, owned), more)
    collected = gc.collect()
    # Only now: what the collection has freed decides which segments can go.
    plan = _plan(device, owned)
    device.empty_cache()
    return _receipt(device, before, plan, f" {collected} unreachable objects collected.")


def _gc_collect(device: Device) -> Receipt:
    stats = device.memory_stats()
    before: Measures = {} if stats is None else measure(device)
    collected = gc.collect()
    text = f"Collected {collected} unreachable objects"
    if stats is None:
        return Receipt("done", message=f"{text}.", result={"collected": collected})
    after = measure(device)
    freed_bytes = fall(before, after, "allocated_bytes")
    text += f"; allocated fell by {size_text(freed_bytes)}, which stays cached."
    result = {"collected": collected, "freed_bytes": freed_bytes}
    return Receipt(
        "done",
        before=before,
        after=after,
        returned_bytes=fall(before, after, "reserved_bytes"),
        message=text,
        result=result,
    )


def _receipt(device: Device, before: Measures, plan: _Plan, more: str) -> Receipt:
    after = measure(device)
    returned_bytes = fall(before, after, "reserved_bytes")
    stayed = plan.stranded_text("stayed")
    return Receipt(
        "done",
        before=before,
        after=after,
        returned_bytes=returned_bytes,
        message=f"Returned {size_text(returned_bytes)} to the device; {stayed}.{more}",
        result=plan.result(),
    )


def _plan_receipt(before: Measures, plan: _Plan, more: str) -> Receipt:
    cache = plan.cache
    after = dict(before)
    for name, sign in (("reserved_bytes", -1), ("device_free_bytes", 1)):
        if before[name] is not None:
            after[name] = before[name] + sign * cache.returnable_bytes
    cached_bytes = cache.returnable_bytes + cache.stranded_bytes + cache.private_pool_bytes
    message = (
        f"Would return {size_text(cache.returnable_bytes)} of {size_text(cached_bytes)} cached; "
        f"{plan.stranded_text('would stay')}."
    )
    if cache.private_pool_bytes:
        kept = size_text(cache.private_pool_bytes)
        message += f" {kept} would stay with CUDA graphs and memory pools."
    return Receipt(
        "done",
        before=before,
        after=after,
        returned_bytes=cache.returnable_bytes,
        message=message + more,
        result=plan.result(),
    )
