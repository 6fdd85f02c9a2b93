"""PyTorch's CUDA caching allocator as a model: the same blocks, segments and counters, no GPU."""

from vramscope_analysis.allocator.address_space import AddressSpace, FirstFitAddresses
from vramscope_analysis.allocator.block import Block
from vramscope_analysis.allocator.errors import OutOfMemoryError
from vramscope_analysis.allocator.events import EventCallback
from vramscope_analysis.allocator.model import CachingAllocator
from vramscope_analysis.allocator.settings import AllocatorSettings
from vramscope_analysis.allocator.summary import memory_summary

__all__ = [
    "AddressSpace",
    "AllocatorSettings",
    "Block",
    "CachingAllocator",
    "EventCallback",
    "FirstFitAddresses",
    "OutOfMemoryError",
    "memory_summary",
]
