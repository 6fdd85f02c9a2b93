"""The hook into PyTorch: a dispatch mode that sees every operation of its thread."""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# PyTorch has no public names for the stack of dispatch modes.

from __future__ import annotations

from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._python_dispatch import TorchDispatchMode

from vramscope.emulation.history import History
from vramscope.emulation.out_of_memory import OutOfMemory
from vramscope.emulation.storages import StorageMirror, dispatches_itself
from vramscope.guard import guarded

TRACED_TENSORS = (FakeTensor, FunctionalTensor)
"""Tensors of PyTorch's own tracing modes, which lie below this one and hold no memory."""

# What ``record_function`` calls at the beginning and at the end of a scope.
_SCOPE_BEGINS: Final[Any] = torch.ops.profiler._record_function_enter_new.default
_SCOPE_ENDS: Final[Any] = torch.ops.profiler._record_function_exit._RecordFunction


class StorageMode(TorchDispatchMode):  # type: ignore[misc]  # torch is not type-checked
    """Runs every operation unchanged and shows its tensors to the mirror.

    Args:
        mirror: counts the tensors.
        history: told of the scopes that the job names.
        out_of_memory: makes the error when a tensor does not fit.
    """

    # Without this, higher-order operators refuse to run under a mode (from torch 2.7 on).
    supports_higher_order_operators = True

    def __init__(self, mirror: StorageMirror, history: History, out_of_memory: OutOfMemory) -> None:
        super().__init__()
        self._mirror = mirror
        self._history = history
        self._out_of_memory = out_of_memory
        self._guard = guarded("emulation")
        self._is_entered = False

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
                if self._history.is_recording and (func is _SCOPE_BEGINS or func is _SCOPE_ENDS):
                    self._mirror.annotate(args[0] if func is _SCOPE_BEGINS else None)
                refused = self._mirror.see(args, kwargs or {}, result)
            if refused is not None:
                # The error's traceback holds this frame: it must not keep what was refused.
                result = None
                raise self._out_of_memory.error(refused)
        return result

    def enter(self) -> None:
        """Put the mode on the stack of the calling thread."""
        self.__enter__()
        self._is_entered = True

    def leave(self) -> bool:
        """Take the mode off the stack of the calling thread, if nothing else lies on top of it.

        Otherwise it stays, with a closed mirror: operations pass through unseen.

        Returns:
            Whether it is off.
        """
        depth = torch._C._len_torch_dispatch_stack()
        if depth and torch._C._get_dispatch_stack_at(depth - 1) is self:
            self.__exit__(None, None, None)
            self._is_entered = False
        return not self._is_entered
