"""The largest tensors that Python knows of, with whose they are and who holds them.

What only C++ holds, such as activations that a backward pass still needs, is not among them.
"""

from __future__ import annotations

import gc
import heapq
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vramscope.guard import guarded
from vramscope.holders.live_tensors import TensorClasses, looking, tensor_words
from vramscope.holders.reach import Reach
from vramscope.holders.search import holders_within
from vramscope.memory_map.owners import Owners
from vramscope.tensors.category import BUFFERS, GRADIENTS, OPTIMIZER_STATE, PARAMETERS
from vramscope.tensors.census import Storage

MAX_TENSORS: Final = 24
_CHUNK: Final = 20_000

CATEGORY_NAMES: Final = {
    PARAMETERS: "parameters",
    GRADIENTS: "gradients",
    OPTIMIZER_STATE: "optimizer_state",
    BUFFERS: "buffers",
}

Holders = Callable[[set[int], Storage, float], dict[int, dict[str, Any]]]
"""Finds who holds the storages at some addresses, before a deadline by ``time.perf_counter``."""


def largest_tensors(
    storage: Storage, owners: Owners | None, deadline_s: float, holders: Holders | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Rows of a report, the largest first, and whether every object was looked at.

    Args:
        storage: finds a tensor's storage on the device.
        owners: whose memory an address is, as it was known last.
        deadline_s: when to stop, by ``time.perf_counter``.
        holders: finds who holds them, if somebody can.
    """
    if "torch" not in sys.modules:
        return [], True
    with looking():
        found, is_complete = _by_storage(storage, deadline_s)
        largest = heapq.nlargest(MAX_TENSORS, found.items(), key=lambda item: item[1][0])
        rows = {address: _row(address, *entry, owners) for address, entry in largest}
    found.clear()
    largest.clear()  # nothing is held while it is asked who holds it
    if holders is not None and rows:
        with guarded("holders"):
            for address, held in holders(set(rows), storage, deadline_s).items():
                rows[address].update(held)
    return list(rows.values()), is_complete


def holders_of_each(
    addresses: set[int], storage: Storage, deadline_s: float
) -> dict[int, dict[str, Any]]:
    """Who holds each storage, as far as it is found before the deadline."""
    reach = Reach(max(0.0, deadline_s - time.perf_counter()))
    classes = TensorClasses()

    def address_of(value: Any) -> int | None:
        place = storage(value) if classes.is_plain(value) else None
        return place[0] if place is not None and place[0] in addresses else None

    try:
        with looking():
            reach.search(lambda value: address_of(value) is not None)
            held: dict[int, dict[str, Any]] = {}
            for number in reach.found:
                address = address_of(reach.objects[number])
                if address is not None and address not in held:
                    held[address] = _held(reach, number)
            return held
    finally:
        reach.clear()


def _held(reach: Reach, number: int) -> dict[str, Any]:
    holder = holders_within(reach, {number: 0})[0]
    # From the tensor outwards, as a person reads it.
    return {"holder": msgspec.to_builtins(holder), "held_by": holder.chain[::-1]}


def _by_storage(storage: Storage, deadline_s: float) -> tuple[dict[int, tuple[int, Any]], bool]:
    """One tensor of each storage, by its address, with the bytes of the storage."""
    found: dict[int, tuple[int, Any]] = {}
    classes = TensorClasses()
    objects = gc.get_objects()
    try:
        for start in range(0, len(objects), _CHUNK):
            if time.perf_counter() > deadline_s:
                return found, False
            for each in objects[start : start + _CHUNK]:
                if classes.is_plain(each):
                    place = storage(each)
                    if place is not None and place[1] and place[0] not in found:
                        found[place[0]] = (place[1], each)
    finally:
        # It is among the objects itself: they would all be held until the next collection.
        objects.clear()
    return found, True


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
