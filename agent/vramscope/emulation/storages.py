"""Which storages are alive, and the block that each has in the allocator model.

Storages die at any moment: in the middle of a call here (the garbage collector runs wherever
objects are made) and on any thread. Their weak references only queue the death; it reaches the
model at the next operation or read. PyTorch keeps the Python object of a storage for as long as
anything in C++ refers to the storage, so that its weak reference outlives all Python names.

Storages in shared memory (batches of DataLoader workers) are a case of their own: PyTorch's cache
of them holds weak C++ references, and in torch 2.4 those keep a dead storage's Python object.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, cast

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from vramscope.emulation.history import History
from vramscope.emulation.interrupts import interrupts_held
from vramscope.emulation.stacks import Stack
from vramscope_analysis.allocator import Block, CachingAllocator, OutOfMemoryError

UntypedStorage = Any
"""``torch.UntypedStorage``; torch's own types do not say what is used here."""


PLAIN_TENSORS: Final = frozenset({torch.Tensor, torch.nn.Parameter})


def dispatches_itself(tensor_type: Any) -> bool:
    """Whether a tensor type has a ``__torch_dispatch__`` of its own: no storage to count."""
    plain: Any = torch.Tensor
    return tensor_type.__torch_dispatch__ is not plain.__torch_dispatch__


class StorageRef(weakref.ref[UntypedStorage]):
    """Weak reference to a storage, with its block."""

    __slots__ = ("block", "key", "shared", "size_bytes", "stack_of_death")

    block: Block
    key: int
    shared: StorageWeakRef
    size_bytes: int
    stack_of_death: Stack | None


class StorageMirror:
    """Gives every storage seen a block of the model, and takes it back when the storage dies.

    Args:
        model: where the blocks are.
        history: told where storages die.
    """

    def __init__(self, model: CachingAllocator, history: History | None = None) -> None:
        self.is_open = True
        self._model = model
        self._history = history if history is not None else History()
        self._refs: dict[int, StorageRef] = {}
        # Bounded by the storages seen: each dies once.
        self._dead: deque[StorageRef] = deque()
        self._shared: list[StorageRef] = []
        self._on_death: Callable[[StorageRef], None] = self._dead.append
        # The sampler thread reads while the training thread allocates. Re-entrant, because the
        # garbage collector may run a finalizer of the job in here, which may run an operation.
        self._lock = threading.RLock()
        self._interrupts = interrupts_held()
        self._is_inside = False
        self._waiting: deque[Callable[[CachingAllocator], object]] = deque()

    def see(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> OutOfMemoryError | None:
        """Count the storages behind an operation. Returns what the device would have refused."""
        with self._lock:
            if self._is_inside:
                # Their next use counts these tensors, if they live that long.
                return None
            with self._interrupts:
                return self._see_inside(args, kwargs, result)

    def _see_inside(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> OutOfMemoryError | None:
        self._is_inside = True
        try:
            if self._dead:
                self._bury()
            self._see_all(args)
            if kwargs:
                self._see_all(kwargs.values())
            self._see_all((result,))
        except OutOfMemoryError as error:
            # The traceback's frames hold the tensors that were refused.
            return error.with_traceback(None)
        finally:
            self._is_inside = False
            if self._waiting:
                self._catch_up()
        return None

    def place_of(self, tensor: Any) -> tuple[int, int] | None:
        """Address in the model and bytes of a tensor's storage; ``None`` if it was never seen.

        Without the lock: only the thread that runs the operations may ask.
        """
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:
            return None
        ref = self._refs.get(storage._cdata)
        if ref is None or ref() is not storage:
            return None
        return ref.block.address, ref.size_bytes

    @contextmanager
    def model(self) -> Generator[CachingAllocator]:
        """Hold the model, brought up to date, for a moment."""
        with self._lock, self._interrupts:
            was_inside, self._is_inside = self._is_inside, True
            try:
                if not was_inside:
                    self._bury()
                    self._bury_shared()
                yield self._model
            finally:
                self._is_inside = was_inside
                if self._waiting:
                    self._catch_up()

    def change(self, action: Callable[[CachingAllocator], object]) -> None:
        """Let ``action`` change the model: now, or when the call that it interrupts is over.

        A finalizer of the job may ask for it in the middle of an allocation.
        """
        with self._lock:
            if self._is_inside:
                self._waiting.append(action)
                return
            with self.model() as model:
                self._make(action, model)

    def gather_deaths(self, gather: bool) -> None:
        """Whether the stack is taken where a storage seen from now on dies."""
        self._on_death = self._died if gather else self._dead.append

    def annotate(self, name: str | None) -> None:
        """Note a scope that the job has named; ``None`` is the end of one."""
        with self._lock:
            self._history.annotate(name)

    def close(self) -> None:
        """See nothing more. Takes no lock: a forked child may never get it."""
        self.is_open = False

    def _catch_up(self) -> None:
        if not self._is_inside:
            with self.model() as model:
                while self._waiting:
                    self._make(self._waiting.popleft(), model)

    def _make(self, change: Callable[[CachingAllocator], object], model: CachingAllocator) -> None:
        self._history.is_asked = True
        try:
            change(model)
        finally:
            self._history.is_asked = False

    def _died(self, ref: StorageRef) -> None:
        # On any thread and at any moment, the end of the interpreter included: no lock.
        if self.is_open:
            ref.stack_of_death = self._history.gather_at_free()
        self._dead.append(ref)

    def _see_all(self, values: Iterable[Any]) -> None:
        for value in values:
            if type(value) in PLAIN_TENSORS:
                self._see_tensor(value)
            elif isinstance(value, (list, tuple)):
                self._see_all(cast(Iterable[Any], value))
            elif isinstance(value, torch.Tensor) and not dispatches_itself(type(value)):
                self._see_tensor(value)

    def _see_tensor(self, tensor: Any) -> None:
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:
            return  # sparse and opaque tensors have none
        key: int = storage._cdata
        size_bytes: int = storage.nbytes()
        ref = self._refs.get(key)
        if ref is None:
            self._register(storage, key, size_bytes)
        elif ref() is not storage:
            # Died after the queue was emptied (on another thread); the address is in use again.
            self._forget(ref)
            self._register(storage, key, size_bytes)
        elif ref.size_bytes != size_bytes:
            self._resize(ref, size_bytes)

    def _register(self, storage: UntypedStorage, key: int, size_bytes: int) -> None:
        if not size_bytes or storage.device.type != "cpu":
            return
        is_shared = storage.is_shared()
        if is_shared:
            self._bury_shared()
        ref = StorageRef(storage, self._on_death)
        ref.block = self._model.malloc(size_bytes)
        ref.key = key
        ref.size_bytes = size_bytes
        ref.stack_of_death = None
        self._refs[key] = ref
        if is_shared:
            ref.shared = StorageWeakRef(storage)
            self._shared.append(ref)

    def _resize(self, ref: StorageRef, size_bytes: int) -> None:
        """The new memory comes before the old goes, as ``resize_bytes_cuda`` copies across."""
        if size_bytes:
            block = self._model.malloc(size_bytes)
            self._history.stack_of_free = None
            self._model.free(ref.block)
            ref.block = block
            ref.size_bytes = size_bytes
        else:
            self._forget(ref)

    def _bury(self) -> None:
        while self._dead:
            self._forget(self._dead.popleft())

    def _bury_shared(self) -> None:
        """Find the dead among the shared storages: with each new one, and before a read."""
        for ref in self._shared:
            if ref.shared.expired():
                self._forget(ref)
        self._shared = [ref for ref in self._shared if self._refs.get(ref.key) is ref]

    def _forget(self, ref: StorageRef) -> None:
        if self._refs.get(ref.key) is ref:
            del self._refs[ref.key]
            self._history.stack_of_free = ref.stack_of_death
            self._model.free(ref.block)
