"""The commands about counters: ``memory_summary``, ``stats`` and ``reset_peaks``."""

from __future__ import annotations

from vramscope.collectors.allocator import flatten
from vramscope.commands.call import Call, Handler
from vramscope.commands.measures import NO_COUNTERS, measure
from vramscope.devices.device import Device
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import CONFLICT, VramscopeError


def counter_handlers(device: Device) -> dict[str, Handler]:
    """The commands about the counters of a device, by name."""

    def memory_summary(call: Call) -> Receipt:
        del call
        text = device.memory_summary()
        if not text:
            raise VramscopeError(CONFLICT, NO_COUNTERS)
        return Receipt("done", message="PyTorch's memory summary.", result=text)

    def stats(call: Call) -> Receipt:
        del call
        nested = device.memory_stats()
        if nested is None:
            raise VramscopeError(CONFLICT, NO_COUNTERS)
        counters = flatten(nested)
        return Receipt("done", message=f"{len(counters)} counters.", result=counters)

    def reset_peaks(call: Call) -> Receipt:
        del call
        before = measure(device)
        device.reset_peaks()
        return Receipt(
            "done",
            before=before,
            after=measure(device),
            message="Every peak counter is set to its current value; the job sees that too.",
        )

    return {"memory_summary": memory_summary, "stats": stats, "reset_peaks": reset_peaks}
