"""The largest tensors that Python knows of, with whose they are and who holds them.

What only C++ holds, such as activations that a backward pass still needs, is not among them.
"""

from __future__ import annotations

import gc
import heapq
import sys
import time
from typing import Any, Final

from msgspec import Struct, field

from vramscope.guard import guarded
from vramscope.holders.live_tensors import TensorClasses, looking, tensor_words
from vramscope.memory_map.owners import Owners
from vramscope.oom.exception_holders import held_by_exceptions
from vramscope.oom.held_tensors import (
    add_storing_lines,
    address_in,
    plain_holder,
    who_holds,
)
from vramscope.tensors.category import BUFFERS, GRADIENTS, NONE, OPTIMIZER_STATE, PARAMETERS
from vramscope.tensors.census import Storage

MAX_TENSORS: Final = 24
_CHUNK: Final = 20_000
_TELLS_LESS: Final = frozenset({"cpp", "unknown"})

CATEGORY_NAMES: Final = {
    PARAMETERS: "parameters",
    GRADIENTS: "gradients",
    OPTIMIZER_STATE: "optimizer_state",
    BUFFERS: "buffers",
}


class Largest(Struct):
    """Rows of a report, and what was found on the way."""

    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The largest first."""
    garbage_bytes: int | None = None
    """What only waits for Python's collector; ``None`` is not known."""
    is_complete: bool = True
    """Whether every object was looked at."""


def largest_tensors(
    storage: Storage, owners: Owners | None, deadline_s: float, *, holders: bool
) -> Largest:
    """Look through all objects of Python.

    Args:
        storage: finds a tensor's storage on the device.
        owners: whose memory an address is, as it was known last.
        deadline_s: when to stop, by ``time.perf_counter``.
        holders: whether to look for who holds them.
    """
    if "torch" not in sys.modules:
        return Largest()
    tensors: dict[int, Any] = {}
    sizes: dict[int, int] = {}
    try:
        with looking():
            is_complete = _add_by_storage(tensors, sizes, storage, deadline_s)
            largest = heapq.nlargest(MAX_TENSORS, sizes, key=lambda each: sizes[each])
            rows = {each: _row(each, sizes[each], tensors[each], owners) for each in largest}
        found = Largest(list(rows.values()), is_complete=is_complete)
        if holders:
            with guarded("holders"):
                _add_holders(found, rows, tensors, sizes, owners, storage, deadline_s)
        return found
    finally:
        tensors.clear()  # an exception would hold them by this frame


def _add_holders(
    found: Largest,
    rows: dict[int, dict[str, Any]],
    tensors: dict[int, Any],
    sizes: dict[int, int],
    owners: Owners | None,
    storage: Storage,
    deadline_s: float,
) -> None:
    chosen = held_by_exceptions(address_in(rows.keys(), storage))
    if found.is_complete:
        # A gradient has no name of the job's own: its parameter holds it, in C++.
        free = {a: size for a, size in sizes.items() if not _is_owned(a, owners)}
        held = who_holds(set(rows), tensors, free, storage, deadline_s)
        found.garbage_bytes = held.garbage_bytes
        for address, holder in held.holders.items():
            if address not in chosen or holder.kind not in _TELLS_LESS:
                chosen[address] = holder
    add_storing_lines(chosen.values(), deadline_s)
    for address, holder in chosen.items():
        rows[address].update(plain_holder(holder))


def _is_owned(address: int, owners: Owners | None) -> bool:
    return owners is not None and owners.category_of(address)[0] != NONE


def _add_by_storage(
    tensors: dict[int, Any], sizes: dict[int, int], storage: Storage, deadline_s: float
) -> bool:
    """Add one tensor of each storage, and its bytes, by its address; whether those are all."""
    classes = TensorClasses()
    objects = gc.get_objects()
    try:
        for start in range(0, len(objects), _CHUNK):
            if time.perf_counter() > deadline_s:
                return False
            for each in objects[start : start + _CHUNK]:
                if classes.is_plain(each):
                    place = storage(each)
                    if place is not None and place[1] and place[0] not in sizes:
                        tensors[place[0]], sizes[place[0]] = each, place[1]
    finally:
        # It is among the objects itself: they would all be held until the next collection.
        objects.clear()
    return True


def _row(address: int, size_bytes: int, tensor: Any, owners: Owners | None) -> dict[str, Any]:
    code, name = (0, "") if owners is None else owners.category_of(address)
    return {
        "tensor": tensor_words(tensor),
        "bytes": size_bytes,
        "category": CATEGORY_NAMES.get(code, ""),
        "name": name,
        "held_by": [],
        "holder": None,
    }
