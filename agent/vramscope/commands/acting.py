"""The commands that need more of the agent than the device, put together for whoever wires it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from vramscope.collectors.allocator_settings import AllocatorSettings
from vramscope.commands.cache import cache_handlers
from vramscope.commands.call import Handler
from vramscope.commands.sampling import Rated, sampling_handlers
from vramscope.commands.settings import setting_handlers
from vramscope.devices.device import Device
from vramscope.tensors.owners import Owned
from vramscope.tensors.tensor_account import TensorAccount

Parts: TypeAlias = "tuple[AllocatorSettings, Rated, TensorAccount]"


def acting_handlers(device: Device, parts: Callable[[], Parts]) -> dict[str, Handler]:
    """Commands on the cache, the allocator's settings and the agent's pace, by name.

    Args:
        device: what they are about.
        parts: what follows the settings, what samples, what counts tensors; once they are there.
    """

    def owned() -> Iterable[Owned]:
        return parts()[2].count_now().owned

    return {
        **cache_handlers(device, owned),
        **setting_handlers(device, lambda: parts()[0].known()),
        **sampling_handlers(lambda: parts()[1]),
    }
