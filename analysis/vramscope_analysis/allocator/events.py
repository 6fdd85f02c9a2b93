"""What the model reports while it works, in the words of PyTorch's own trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

PoolId: TypeAlias = tuple[int, int]
"""Id of a private pool (``MempoolId_t``); (0, 0) is the default pool."""

EventCallback: TypeAlias = Callable[[str, int, int, int, PoolId], None]
"""Takes ``(action, address, size_bytes, stream, pool_id)`` of one trace entry.

Actions: alloc, free_requested, free_completed (size as requested), segment_alloc, segment_free,
segment_map, segment_unmap (size of the segment, or of the pages) and oom (rounded size; the
address is what the device had left).
"""
