"""Starting and stopping the emulation.

What is counted: every storage of a CPU tensor that an operation of the starting thread reads or
writes, from the first such operation until the storage is freed. That covers parameters,
activations (also those that only the backward graph still holds), gradients, optimizer state and
batches, since the CPU backward runs on the thread that called it. What differs from a real device:

- Workspaces inside one operation are invisible, and so are the CUDA context and its libraries.
- Host tensors and device tensors are one and the same here: a batch counts once, where a real job
  has a host copy as well, and a data set held in a tensor counts as soon as an operation uses it.
- Operations of other threads are not seen (DataLoader workers, ``DataParallel``); their tensors
  count from the moment the starting thread uses them.
- ``storage.resize_()`` shows at the next operation on the tensor; sparse tensors do not show.
- An operation runs before its memory is counted, so the out-of-memory error comes after it.
- All streams are one: a CPU has no queues of its own.
- In the history, a backward pass has the Python stack of its caller; on a device it has none.
- ``torch.compile`` runs eagerly while the emulation is on (PyTorch compiles nothing under a
  dispatch mode of a user); the insides of higher-order operators (``cond``, ``flex_attention``)
  are not seen, only what goes in and comes out.
- CPU optimizers and kernels choose other algorithms than CUDA ones (no ``foreach``, no cuBLAS).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Final

import torch

from vramscope.emulation.allocator_settings import settings_from_environment
from vramscope.emulation.device import EmulatedDevice
from vramscope.emulation.history import History
from vramscope.emulation.main_thread import run_on_main_thread
from vramscope.emulation.memory_functions import MemoryFunctions
from vramscope.emulation.mode import StorageMode
from vramscope.emulation.out_of_memory import OutOfMemory
from vramscope.emulation.storages import StorageMirror
from vramscope.emulation.torch_version import modelled_version
from vramscope.notices import Notices
from vramscope_analysis.allocator import CachingAllocator
from vramscope_protocol.messages import DeviceInfo

DYNAMO_DISABLE: Final = "TORCHDYNAMO_DISABLE"
"""Read by ``torch.compile`` each time that it is called."""
_LEAVE_WITHIN_S: Final = 1.0

_mirrors: weakref.WeakSet[StorageMirror] = weakref.WeakSet()
_is_fork_handled = False


class Emulation:
    """A running emulation. Made by :func:`start_emulation`."""

    def __init__(
        self,
        capacity_bytes: int,
        notices: Notices,
        on_change: Callable[[DeviceInfo], None] | None = None,
    ) -> None:
        version = modelled_version(str(torch.__version__))
        settings = settings_from_environment(os.environ, version, notices)
        model = CachingAllocator(capacity_bytes, settings.values, version=version)
        history = History()
        out_of_memory = OutOfMemory(version)
        info = DeviceInfo(index=0, name="emulated", total_bytes=capacity_bytes, emulated=True)
        self._mirror = mirror = StorageMirror(model, history)
        self._mode = StorageMode(mirror, history, out_of_memory)
        self._dynamo_disable: str | None = None
        self._thread = threading.current_thread()
        self.device = EmulatedDevice(mirror, history, settings, info, version, on_change)
        self._functions = MemoryFunctions(self.device, out_of_memory, lambda: mirror.is_open)

    def start(self) -> None:
        """Watch the operations of this thread."""
        _close_after_fork(self._mirror)
        # Under a mode TorchDynamo skips the frame that it was asked to compile, and then compiles
        # what that frame calls, this package included. Off, it leaves everything alone.
        self._dynamo_disable = os.environ.get(DYNAMO_DISABLE)
        os.environ[DYNAMO_DISABLE] = "1"
        self._functions.install()
        self._thread = threading.current_thread()
        self._mode.enter()

    def stop(self) -> None:
        """Stop watching. The device keeps its last state. Safe to call twice."""
        if not self._mirror.is_open:
            return
        self._mirror.close()
        self._leave()
        self._functions.remove()
        if self._dynamo_disable is None:
            os.environ.pop(DYNAMO_DISABLE, None)
        else:
            os.environ[DYNAMO_DISABLE] = self._dynamo_disable

    def _leave(self) -> None:
        """Leave the mode, which only the thread that has entered it can do."""
        current = threading.current_thread()
        if current is self._thread or self._thread is not threading.main_thread():
            self._mode.leave()
        else:
            # A detach from outside. Where the main thread is in the middle of an operation, the
            # mode is off its stack for a moment, so it is tried until it is found there.
            run_on_main_thread(self._mode.leave, _LEAVE_WITHIN_S)


def _close_after_fork(mirror: StorageMirror) -> None:
    """Have it closed in a forked child (a DataLoader worker), which inherits the mode.

    The tensors there are not the job's, and the lock may have been held by another thread when the
    process forked.
    """
    global _is_fork_handled
    _mirrors.add(mirror)
    if not _is_fork_handled:  # once per process: Python cannot take a fork handler back
        os.register_at_fork(after_in_child=_close_all)
        _is_fork_handled = True


def _close_all() -> None:
    for mirror in list(_mirrors):
        mirror.close()


def start_emulation(
    capacity_bytes: int,
    notices: Notices | None = None,
    on_change: Callable[[DeviceInfo], None] | None = None,
) -> Emulation:
    """Emulate a device for the tensors of the calling thread, from now on.

    Args:
        capacity_bytes: memory of the emulated device.
        notices: told of options that are not understood.
        on_change: told, on the thread that reads ``device_memory``, when the job caps itself.
    """
    emulation = Emulation(capacity_bytes, notices if notices is not None else Notices(), on_change)
    emulation.start()
    return emulation
