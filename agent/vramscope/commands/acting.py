"""The commands that need more of the agent than the device, put together for whoever wires it."""

from __future__ import annotations

from collections.abc import Callable

from vramscope.collectors.allocator_options import Options
from vramscope.commands.call import Handler
from vramscope.commands.sampling import Rated, sampling_handlers
from vramscope.commands.settings import setting_handlers
from vramscope.devices.device import Device


def acting_handlers(
    device: Device, known_options: Callable[[], Options], sampler: Callable[[], Rated]
) -> dict[str, Handler]:
    """Commands on the cache, the allocator's settings and the agent's pace, by name.

    Args:
        device: what they are about.
        known_options: the allocator's options as far as texts have told them.
        sampler: what samples.
    """
    return {**setting_handlers(device, known_options), **sampling_handlers(sampler)}
