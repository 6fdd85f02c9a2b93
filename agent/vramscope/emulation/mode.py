"""The hook into PyTorch: a dispatch mode that sees every operation of its thread."""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# PyTorch has no public names for the stack of dispatch modes.

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._python_dispatch import TorchDispatchMode

from vramscope.emulation.storages import StorageMirror, dispatches_itself
from vramscope.guard import guarded
from vramscope_analysis.allocator import OutOfMemoryError

TRACED_TENSORS = (FakeTensor, FunctionalTensor)
"""Tensors of PyTorch's own tracing modes, which lie below this one and hold no memory."""


class StorageMode(TorchDispatchMode):  # type: ignore[misc]  # torch is not type-checked
    """Runs every operation unchanged and shows its tensors to the mirror."""

    # Without this, higher-order operators refuse to run under a mode (from torch 2.7 on).
    supports_higher_order_operators = True

    def __init__(self, mirror: StorageMirror) -> None:
        super().__init__()
        self._mirror = mirror
        self._guard = guarded("emulation")

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # PyTorch would wrap __torch_dispatch__ so that it is never compiled: twice the cost of an
        # operation, for nothing, since TorchDynamo is off while the emulation runs.
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if types and any(map(dispatches_itself, types)):
            if not any(issubclass(kind, TRACED_TENSORS) for kind in types):
                # The tensor's own __torch_dispatch__ first. The operations that it makes on
                # plain tensors come by here.
                return NotImplemented
            return func(*args, **(kwargs or {}))
        result = func(*args, **kwargs) if kwargs else func(*args)
        if self._mirror.is_open:
            refused = None
            with self._guard:
                refused = self._mirror.see(args, kwargs or {}, result)
            if refused is not None:
                # The error's traceback holds this frame: it must not keep what was refused.
                result = None
                raise torch_error(refused)
        return result

    def leave(self) -> None:
        """Take the mode off the stack, if nothing else lies on top of it.

        Otherwise it stays, with a closed mirror: operations pass through unseen.
        """
        depth = torch._C._len_torch_dispatch_stack()
        if depth and torch._C._get_dispatch_stack_at(depth - 1) is self:
            self.__exit__(None, None, None)


def format_size(size_bytes: int) -> str:
    """Size as PyTorch's out-of-memory error writes it."""
    if size_bytes <= 1024:
        return f"{size_bytes} bytes"
    if size_bytes <= 1 << 20:
        return f"{size_bytes / (1 << 10):.2f} KiB"
    if size_bytes <= 1 << 30:
        return f"{size_bytes / (1 << 20):.2f} MiB"
    return f"{size_bytes / (1 << 30):.2f} GiB"


def torch_error(refused: OutOfMemoryError) -> Exception:
    """The error that the job would get from a real device, marked as emulated.

    It begins as the real one does: training loops look for these words.
    """
    cached_bytes = refused.reserved_bytes - refused.allocated_bytes
    error: Exception = torch.cuda.OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {format_size(refused.segment_bytes)}. "
        f"GPU 0 (emulated) has a total capacity of {format_size(refused.capacity_bytes)} "
        f"of which {format_size(refused.free_bytes)} is free. "
        f"Of the allocated memory {format_size(refused.allocated_bytes)} is allocated by PyTorch, "
        f"and {format_size(cached_bytes)} is reserved by PyTorch but unallocated."
    )
    return error
