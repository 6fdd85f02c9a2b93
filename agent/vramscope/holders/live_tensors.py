"""Tensors that are alive in Python, told by their classes: a proxy would answer for others."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, TypeAlias

Storage: TypeAlias = Callable[[Any], "tuple[int, int] | None"]
"""Address and size of a tensor's storage on the device, ``None`` if it is not there."""


class TensorClasses:
    """Knows which classes are tensors with a storage of their own."""

    def __init__(self) -> None:
        torch: Any = sys.modules["torch"]
        self._tensor: Any = torch.Tensor
        self._strided = torch.strided
        # By id: a class may refuse to be hashed. It is held, so that the id stays its.
        self._known: dict[int, tuple[bool, Any]] = {}

    def is_plain(self, value: object) -> bool:
        """Whether an object is a dense tensor that is no wrapper around others."""
        kind: Any = type(value)
        known = self._known.get(id(kind))
        if known is None:
            known = self._known[id(kind)] = (self._has_storage(kind), kind)
        if not known[0]:
            return False
        tensor: Any = value
        return tensor.layout is self._strided

    def _has_storage(self, kind: Any) -> bool:
        if not issubclass(kind, self._tensor):
            return False
        return kind.__torch_dispatch__ is self._tensor.__torch_dispatch__


@contextmanager
def looking() -> Generator[None]:
    """Neither subclasses nor modes of the job get to see that their tensors are looked at."""
    with sys.modules["torch"]._C.DisableTorchFunction():
        yield


def all_tensors() -> list[Any]:
    """Every plain tensor that the garbage collector knows of. To be dropped at once."""
    classes = TensorClasses()
    objects = gc.get_objects()
    try:
        with looking():
            return [each for each in objects if classes.is_plain(each)]
    finally:
        # It is among the objects itself: they would all be held until the next collection.
        objects.clear()


def largest_tensors(storage: Storage, count: int = 10) -> list[Any]:
    """Tensors with the largest storages, one for each storage. To be dropped at once.

    Args:
        storage: finds a tensor's storage on the device.
        count: how many at most.
    """
    found: dict[int, tuple[int, Any]] = {}
    with looking():
        for tensor in all_tensors():
            place = storage(tensor)
            if place is not None and place[1]:
                found.setdefault(place[0], (place[1], tensor))
    largest = sorted(found.values(), key=lambda each: -each[0])[:count]
    return [tensor for _, tensor in largest]


def tensor_words(tensor: Any) -> str:
    """A tensor as a person would say it: ``float32[512, 1024]``."""
    with looking():
        kind = str(tensor.dtype).rpartition(".")[2]
        return f"{kind}[{', '.join(map(str, tuple(tensor.shape)))}]"


def words_of(tensors: Iterable[Any], limit: int = 4) -> list[str]:
    """Different tensors in words, the most frequent first."""
    counts: dict[str, int] = {}
    for tensor in tensors:
        words = tensor_words(tensor)
        counts[words] = counts.get(words, 0) + 1
    return sorted(counts, key=lambda words: -counts[words])[:limit]


def tensors_at(addresses: set[int], storage: Storage, deadline_s: float) -> dict[int, Any]:
    """Tensors whose storages begin at addresses, one for each. To be dropped at once.

    The youngest objects are looked at first: what has just come is among them.

    Args:
        addresses: of storages.
        storage: finds a tensor's storage on the device.
        deadline_s: of ``time.perf_counter``: older objects are not looked at after it.
    """
    classes = TensorClasses()
    found: dict[int, Any] = {}
    for age in (0, 1, 2):
        if len(found) == len(addresses) or time.perf_counter() > deadline_s:
            break
        objects = gc.get_objects(generation=age)
        try:
            for tensor in filter(classes.is_plain, objects):
                place = storage(tensor)
                if place is not None and place[0] in addresses:
                    found.setdefault(place[0], tensor)
        finally:
            objects.clear()
    return found
