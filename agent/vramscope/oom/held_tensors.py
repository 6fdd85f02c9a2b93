"""Who holds some tensors, and which of them only wait for Python's garbage collector.

First down from the names of the job, which is quick and finds nearly all; then up from what was not
reached so: garbage, an exception that is kept, a library, C++.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from vramscope.holders.holder import HolderFound, holder_report
from vramscope.holders.live_tensors import TensorClasses, looking
from vramscope.holders.reach import Reach
from vramscope.holders.search import holders_within
from vramscope.holders.storing_line import find_storing_lines
from vramscope.holders.unreached import Above
from vramscope.tensors.census import Storage

MOST_ABOVE: Final = 32
"""Of the tensors that no name leads to so many are looked at, the largest."""


class Held(Struct):
    """What was found."""

    holders: dict[int, HolderFound] = field(default_factory=dict[int, HolderFound])
    """By address; those that are not there were not found in time."""
    garbage_bytes: int | None = None
    """Of all tensors; ``None`` is not known."""


def who_holds(
    wanted: set[int],
    tensors: dict[int, Any],
    sizes: Mapping[int, int],
    storage: Storage,
    deadline_s: float,
) -> Held:
    """Look for holders before a deadline, by ``time.perf_counter``.

    Args:
        wanted: addresses of the storages that are asked for.
        tensors: one of each storage, by its address; emptied: what holds them is not to be found.
        sizes: bytes of each storage, of those that may be garbage.
        storage: finds a tensor's storage.
    """
    held = Held()
    reach = Reach(_left_s(deadline_s))
    try:
        with looking():
            reached = _reached(reach, sizes, storage)
            for address in wanted & reached.keys():
                held.holders[address] = holders_within(reach, {reached[address]: 0})[0]
            missing = sorted(sizes.keys() - reached.keys(), key=lambda each: -sizes[each])
            missing = missing[:MOST_ABOVE]
            chosen = [tensors[address] for address in missing]
            tensors.clear()
            if reach.is_complete:
                held.garbage_bytes = 0
                if chosen:
                    _look_above(held, reach, missing, chosen, wanted, sizes, deadline_s)
    finally:
        tensors.clear()
        reach.clear()
    return held


def add_storing_lines(holders: Iterable[HolderFound], deadline_s: float) -> None:
    """Find the statements that put tensors where they are, before a deadline. Reads source files.

    Args:
        holders: as they were found.
        deadline_s: when to stop, by ``time.perf_counter``.
    """
    known: dict[str, HolderFound] = {}
    for holder in holders:
        key = repr((holder.targets, holder.caller))
        if key not in known:
            if time.perf_counter() > deadline_s:
                return
            find_storing_lines([holder])
            known[key] = holder
        holder.stored_at = known[key].stored_at


def plain_holder(holder: HolderFound) -> dict[str, Any]:
    """What a row of a report says of a holder."""
    # From the tensor outwards, as a person reads it.
    return {"holder": holder_report(holder), "held_by": holder.chain[::-1]}


def address_in(addresses: Container[int], storage: Storage) -> Callable[[Any], int | None]:
    """What tells the address of an object's storage, if it is a tensor at one of these."""
    classes = TensorClasses()

    def address_of(value: Any) -> int | None:
        place = storage(value) if classes.is_plain(value) else None
        return place[0] if place is not None and place[0] in addresses else None

    return address_of


def _reached(reach: Reach, sizes: Mapping[int, int], storage: Storage) -> dict[int, int]:
    """Numbers of the tensors that names lead to, by the addresses of their storages."""
    address_of = address_in(sizes.keys(), storage)
    reach.search(lambda value: address_of(value) is not None)
    reached: dict[int, int] = {}
    for number in reach.found:
        address = address_of(reach.objects[number])
        if address is not None:
            reached.setdefault(address, number)
    return reached


def _look_above(
    held: Held,
    reach: Reach,
    missing: list[int],
    chosen: list[Any],
    wanted: set[int],
    sizes: Mapping[int, int],
    deadline_s: float,
) -> None:
    """Go up from what no name leads to: its addresses, and its tensors."""
    above = Above(reach, chosen, [0] * len(chosen), _left_s(deadline_s))
    try:
        garbage = sum(sizes[missing[place]] for place in above.garbage)
        held.garbage_bytes = garbage if garbage or above.is_complete else None
        for place, address in enumerate(missing):
            if address not in wanted:
                continue
            if place in above.alone and above.is_complete:
                held.holders[address] = HolderFound("cpp")
            else:
                held.holders.update((address, each) for each in above.holders([place])[:1])
    finally:
        above.clear()


def _left_s(deadline_s: float) -> float:
    return max(0.0, deadline_s - time.perf_counter())
