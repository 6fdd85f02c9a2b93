"""Which exceptions mean that memory has run out, on the device or on the host."""

from __future__ import annotations

from typing import Final, Literal

from vramscope.guard import text_of

Place = Literal["device", "host"]

MAX_TEXT: Final = 4000

_PHRASES: Final = ("out of memory", "OutOfMemory")
_HOST_PHRASES: Final = ("DefaultCPUAllocator", "pin memory", "pinned memory", "cudaHostAlloc")
_TORCH_CLASS: Final = "OutOfMemoryError"


def place_of(error: BaseException) -> Place | None:
    """Where memory has run out if that is what an exception says; ``None`` if it is not.

    PyTorch's own class is found by its name, without importing PyTorch. Besides it, libraries
    that ask the driver themselves raise a plain ``RuntimeError``, and PyTorch does where it failed
    to list the processes of the device for its message (an assertion about ``NVML_SUCCESS``).
    """
    kinds = type(error).__mro__
    if MemoryError in kinds:
        return "host"
    if any(kind.__name__ == _TORCH_CLASS for kind in kinds):
        return "device"
    if RuntimeError not in kinds:
        return None
    text = message_of(error)
    if "NVML_SUCCESS" in text and "INTERNAL ASSERT" in text and "Allocator" in text:
        return "device"
    if any(phrase in text for phrase in _HOST_PHRASES) and _says_so(text):
        return "host"
    return "device" if _says_so(text) else None


def message_of(error: BaseException) -> str:
    """Text of an exception, within bounds."""
    return text_of(error)[:MAX_TEXT]


def _says_so(text: str) -> bool:
    return any(phrase in text for phrase in _PHRASES) or "can't allocate memory" in text
