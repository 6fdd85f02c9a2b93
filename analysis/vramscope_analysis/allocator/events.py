"""What the model reports while it works, in the words of PyTorch's own trace."""

from __future__ import annotations

from collections.abc import Callable

EventCallback = Callable[[str, int, int, int], None]
"""Takes ``(action, address, size_bytes, stream)`` of one trace entry.

Actions: alloc, free_requested, free_completed (size as requested), segment_alloc, segment_free
(size of the segment) and oom (rounded size; the address is what the device had left).
"""
