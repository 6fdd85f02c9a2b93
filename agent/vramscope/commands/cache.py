"""The commands that give memory back: ``empty_cache``, ``gc_collect`` and both."""

from __future__ import annotations

import gc

from msgspec.structs import asdict

from vramscope.commands.cache_plan import CachePlan, plan_empty_cache
from vramscope.commands.call import Call, Handler
from vramscope.commands.measures import Measures, fall, measure
from vramscope.devices.device import Device
from vramscope.size_text import size_text
from vramscope_protocol.commands import Receipt


def cache_handlers(device: Device) -> dict[str, Handler]:
    """The commands that give memory of a device back, by name."""

    def empty(call: Call) -> Receipt:
        return _empty_cache(device, call)

    def collect(call: Call) -> Receipt:
        del call
        return _gc_collect(device)

    def both(call: Call) -> Receipt:
        return _empty_cache_and_gc_collect(device, call)

    return {"empty_cache": empty, "gc_collect": collect, "empty_cache+gc_collect": both}


def _empty_cache(device: Device, call: Call) -> Receipt:
    before = measure(device)
    plan = plan_empty_cache(device.segments())
    if call.dry_run:
        return _plan_receipt(before, plan, "")
    device.empty_cache()
    return _receipt(device, before, f"{size_text(plan.stranded_bytes)} stayed stranded.")


def _empty_cache_and_gc_collect(device: Device, call: Call) -> Receipt:
    before = measure(device)
    if call.dry_run:
        plan = plan_empty_cache(device.segments())
        more = " What garbage collection would free besides is not known in advance."
        return _plan_receipt(before, plan, more)
    collected = gc.collect()
    # Only now: what the collection has freed decides which segments can go.
    plan = plan_empty_cache(device.segments())
    device.empty_cache()
    stayed = f"{size_text(plan.stranded_bytes)} stayed stranded."
    return _receipt(device, before, f"{stayed} {collected} unreachable objects collected.")


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


def _receipt(device: Device, before: Measures, more: str) -> Receipt:
    after = measure(device)
    returned_bytes = fall(before, after, "reserved_bytes")
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
