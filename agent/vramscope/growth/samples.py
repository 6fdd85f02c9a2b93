"""Tensors that lie in blocks of a group, some of each time between two looks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from vramscope.growth.groups import Group

MOST_SAMPLES: Final = 12
_NEAR_ENDS: Final = 3
_ENOUGH: Final = 3


def sample_addresses(group: Group, most: int = MOST_SAMPLES) -> dict[int, int]:
    """Addresses of blocks to be looked for, with the number of the time in which they came.

    What came last may still be in use by the step that has just ended, and is left out if there is
    enough of what came before.
    """
    times = group.addresses
    if sum(map(len, times[:-1])) >= _ENOUGH:
        times = times[:-1]
    rows = zip_longest(*map(_from_both_ends, times))
    found: dict[int, int] = {}
    for row in rows:
        for number, address in enumerate(row):
            if address is not None and len(found) < most:
                found[address] = number
    return found


def _from_both_ends(addresses: Sequence[int]) -> list[int]:
    """The first ones, then the last ones: neighbours are often of one and the same call."""
    if len(addresses) <= 2 * _NEAR_ENDS:
        return list(addresses)
    return [*addresses[:_NEAR_ENDS], *addresses[-_NEAR_ENDS:]]
