"""Tensors that are alive in Python, told by their classes: a proxy would answer for others."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import compress
from typing import Any, Final

from vramscope.holders.time_box import TimeBox
from vramscope.tensors.census import Storage

_CHUNK: Final = 50_000
"""Objects that are looked at at once: a job may have tens of millions."""


class TensorClasses:
    """Knows which classes are tensors with a storage of their own."""

    def __init__(self) -> None:
        torch: Any = sys.modules["torch"]
        self._tensor: Any = torch.Tensor
        self._strided = torch.strided
        self._has_own: Callable[[Any], bool] = torch._C._has_storage
        # By id: a class may refuse to be hashed. It is held, so that the id stays its.
        self._known: dict[int, tuple[bool, Any]] = {}

    def is_plain(self, value: object) -> bool:
        """Whether an object is a dense tensor that is no wrapper around others; in ``looking``."""
        kind: Any = type(value)
        if not self.has_storage(kind):
            return False
        tensor: Any = value
        # Inside of torch.func a tensor of the plain class may be one that only wraps another.
        return tensor.layout is self._strided and bool(self._has_own(tensor))

    def has_storage(self, kind: Any) -> bool:
        """Whether a class is that of tensors, and no wrapper around others."""
        known = self._known.get(id(kind))
        if known is None:
            is_tensor = issubclass(kind, self._tensor)
            has = is_tensor and kind.__torch_dispatch__ is self._tensor.__torch_dispatch__
            known = self._known[id(kind)] = (has, kind)
        return known[0]

    def ids(self) -> set[int]:
        """Ids of all such classes that there are; by id, as a class may refuse to be hashed."""
        kinds = [self._tensor]
        for kind in kinds:
            kinds += type.__subclasses__(kind)
        return {id(kind) for kind in kinds if self.has_storage(kind)}


@contextmanager
def looking() -> Generator[None]:
    """Neither subclasses nor modes of the job get to see that their tensors are looked at."""
    with sys.modules["torch"]._C.DisableTorchFunction():
        yield


def _plain_tensors(objects: list[Any], ids: set[int], classes: TensorClasses) -> list[Any]:
    """By the classes first: there are few beside hundreds of thousands of objects."""
    are_tensors = map(ids.__contains__, map(id, map(type, objects)))
    return [each for each in compress(objects, are_tensors) if classes.is_plain(each)]


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


def tensors_at(addresses: set[int], storage: Storage, box: TimeBox) -> dict[int, Any]:
    """Tensors whose storages begin at addresses, one for each. To be dropped at once.

    The youngest objects are looked at first: what has just come is among them.

    Args:
        addresses: of storages.
        storage: finds a tensor's storage on the device.
        box: further objects are not looked at after it.
    """
    classes = TensorClasses()
    ids = classes.ids()
    found: dict[int, Any] = {}
    for age in (0, 1, 2):
        objects = gc.get_objects(generation=age)
        try:
            for start in range(0, len(objects), _CHUNK):
                if len(found) == len(addresses) or box.is_over:
                    return found
                for tensor in _plain_tensors(objects[start : start + _CHUNK], ids, classes):
                    place = storage(tensor)
                    if place is not None and place[0] in addresses:
                        found.setdefault(place[0], tensor)
        finally:
            objects.clear()
    return found
