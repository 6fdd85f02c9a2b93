"""The plain tensors inside what a job holds: containers, wrapper subclasses, sparse tensors.

Nothing here computes: no operation of autograd and no collective is run, and no attribute is read
that only looks like one.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

MAX_DEPTH: Final = 6
"""How deep containers are looked into: optimizers nest their state two or three levels."""

_NOT_CONTAINERS: Final = (str, bytes, bytearray, int, float, complex, type(None))
_FOREIGN: Final = frozenset({"builtins", "threading", "logging", "weakref", "types", "functools"})
_COMPRESSED: Final = ("crow_indices", "col_indices", "ccol_indices", "row_indices", "values")


class Leaves:
    """Finds plain tensors: those with a storage of their own.

    Args:
        found: called with each.
    """

    def __init__(self, found: Callable[[Any], object]) -> None:
        torch: Any = sys.modules["torch"]
        self._found = found
        self._tensor: Any = torch.Tensor
        self._strided = torch.strided
        self._parameter: Any = torch.nn.Parameter
        self._own_dispatch: dict[Any, bool] = {}
        # By id: an object that was looked into, and how deep. It is held, so that the id stays its.
        self._looked_into: dict[int, tuple[int, Any]] = {}

    def of_tensor(self, tensor: Any) -> None:
        """Find the tensors that hold the memory of one tensor."""
        kind = _class_of(tensor)
        if kind is not self._tensor and kind is not self._parameter:
            self._of_unusual(kind, tensor)
        elif tensor.layout is self._strided:
            self._found(tensor)
        else:
            self._of_sparse(tensor)

    def of_value(self, value: Any, depth: int = MAX_DEPTH) -> None:
        """Find the tensors inside anything: containers and simple objects are looked into."""
        kind = _class_of(value)
        if issubclass(kind, self._tensor):
            self.of_tensor(value)
        elif not issubclass(kind, _NOT_CONTAINERS) and self._is_deeper(value, depth):
            for inner in _inside(kind, value):
                self.of_value(inner, depth - 1)

    def _is_deeper(self, value: Any, depth: int) -> bool:
        """Whether to look into an object, or once more because its inside was cut off before.

        The state of each parameter may refer to the optimizer, with all the others in it.
        """
        if self._looked_into.get(id(value), (0,))[0] >= depth:
            return False
        self._looked_into[id(value)] = (depth, value)
        return True

    def _of_unusual(self, kind: Any, tensor: Any) -> None:
        own_dispatch = self._own_dispatch.get(kind)
        if own_dispatch is None:
            own_dispatch = kind.__torch_dispatch__ is not self._tensor.__torch_dispatch__
            self._own_dispatch[kind] = own_dispatch
        if own_dispatch:
            # A wrapper has no memory: what it wraps has (DTensor, quantised tensors). One that
            # does not say what it wraps is of a tracing mode, or nobody knows.
            flatten = getattr(tensor, "__tensor_flatten__", None)
            if flatten is not None:
                for name in flatten()[0]:
                    # Newer releases name what is no tensor, too.
                    self.of_value(getattr(tensor, name), 0)
        elif tensor.layout is self._strided:
            self._found(tensor)
            self._of_attributes(tensor)
        else:
            self._of_sparse(tensor)

    def _of_attributes(self, tensor: Any) -> None:
        """Subclasses that carry more tensors, as 4-bit parameters their scales."""
        for value in list(tensor.__dict__.values()):
            if not callable(value):  # such as a module, which may be the one that holds it
                self.of_value(value, 2)

    def _of_sparse(self, tensor: Any) -> None:
        if sys.modules["torch"]._C._len_torch_dispatch_stack():
            return  # taking it apart would be an operation, which a mode of the job would see
        names = ("_indices", "_values") if tensor.is_sparse else _COMPRESSED
        for name in names:
            part = getattr(tensor, name, None)
            try:
                inner = None if part is None else part()
            except RuntimeError:
                continue  # this layout has no such part
            if inner is not None:
                self.of_tensor(inner)


def _class_of(value: object) -> Any:
    """Never ``__class__``: a proxy answers with that of another object."""
    return type(value)


def _inside(kind: Any, value: Any) -> Iterable[Any]:
    if issubclass(kind, Mapping):
        # A copy, made in one go: the job's other threads may change the original.
        return list(cast("Mapping[Any, Any]", value).values())
    if issubclass(kind, (list, tuple, set, frozenset)):
        return list(cast("Iterable[Any]", value))
    # Dataclasses and other simple objects; not modules, functions, classes or proxies.
    if kind.__module__ in _FOREIGN or issubclass(kind, weakref.ProxyTypes) or callable(value):
        return ()
    attributes = getattr(value, "__dict__", None)
    if type(attributes) is not dict:
        return ()
    return list(cast("dict[str, Any]", attributes).values())
