"""The command ``explain_growth``: which lines hold more and more memory, and what keeps it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from math import ceil

from vramscope.commands.call import Call, Handler, Ongoing
from vramscope.devices.device import Device
from vramscope.growth.growth_watch import GrowthWatch
from vramscope.growth.host_watch import HostWatch
from vramscope.growth.optimizers_in_use import OptimizersInUse
from vramscope.growth.ramp_watch import RampWatch
from vramscope.growth.recording import StackRecording
from vramscope.history.history import History
from vramscope_protocol.errors import CONFLICT, VramscopeError


def growth_handlers(
    device: Device,
    history: History,
    add_cost_ns: Callable[[int], object],
    optimizers: OptimizersInUse | None,
    on_answer: Callable[[], object] = bool,
) -> dict[str, Handler]:
    """The command about growth, by name.

    Args:
        device: is looked at.
        history: owns the recording.
        add_cost_ns: told what the looks cost.
        optimizers: knows who steps; None is that nobody may ask.
        on_answer: called on the training thread when there is something to be told.
    """
    if optimizers is None:
        return {}
    running: list[GrowthWatch | HostWatch | RampWatch] = []
    paced: list[GrowthWatch | HostWatch] = []

    def explain_growth(call: Call) -> Ongoing:
        if any(watch.is_on for watch in running):
            raise VramscopeError(CONFLICT, "what grows is being looked at already")
        now_ns = time.perf_counter_ns()
        owed_s = max((watch.owed_ns(now_ns) / 1e9 for watch in paced), default=0.0)
        if owed_s:
            why = "the last answer has cost the job more than its share"
            raise VramscopeError(CONFLICT, f"{why}: ask again in {ceil(owed_s * 10) / 10} s")
        if "torch" not in sys.modules:
            raise VramscopeError(CONFLICT, "this process has not imported torch yet")
        if call.params.host:
            host_watch = HostWatch(device.storage, call.params, call.step, add_cost_ns)
            running[:] = paced[:] = [host_watch]
            return host_watch
        if device.memory_stats() is None:
            raise VramscopeError(CONFLICT, "this process has not used the device yet")
        if call.params.above_bytes is not None:
            ramp_watch = RampWatch(device, call.params, call.step, add_cost_ns)
            running[:] = [ramp_watch]
            return ramp_watch
        why_not = device.why_no_segments()
        if why_not is not None:
            raise VramscopeError(CONFLICT, why_not)
        recording = StackRecording(history)
        watch = GrowthWatch(
            device,
            recording,
            call.params,
            call.id,
            add_cost_ns,
            optimizers.in_use,
            on_answer,
        )
        running[:] = paced[:] = [watch]
        return watch

    return {"explain_growth": explain_growth}
