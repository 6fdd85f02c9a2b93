"""PyTorch's CUDA caching allocator as a model: the same blocks, segments and counters, no GPU."""

from vramscope_analysis.allocator.address_space import AddressSpace, FirstFitAddresses
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.errors import OutOfMemoryError
from vramscope_analysis.allocator.events import EventCallback, PoolId
from vramscope_analysis.allocator.model import CachingAllocator
from vramscope_analysis.allocator.pool import DEFAULT_POOL_ID
from vramscope_analysis.allocator.settings import AllocatorSettings
from vramscope_analysis.allocator.settings_forms import (
    settings_dict,
    settings_from_snapshot,
    settings_text,
    snapshot_settings,
)
from vramscope_analysis.allocator.settings_parser import (
    SettingsError,
    changed_settings,
    parse_settings,
)
from vramscope_analysis.allocator.summary import memory_summary
from vramscope_analysis.allocator.version_rules import (
    DEFAULT_VERSION,
    NEWEST_VERSION,
    OLDEST_VERSION,
    Version,
)

__all__ = [
    "DEFAULT_POOL_ID",
    "DEFAULT_VERSION",
    "NEWEST_VERSION",
    "OLDEST_VERSION",
    "AddressSpace",
    "AllocatorSettings",
    "Block",
    "CachingAllocator",
    "EventCallback",
    "FirstFitAddresses",
    "OutOfMemoryError",
    "PoolId",
    "SettingsError",
    "Version",
    "changed_settings",
    "memory_summary",
    "parse_settings",
    "settings_dict",
    "settings_from_snapshot",
    "settings_text",
    "snapshot_settings",
]
