"""How many a container takes at most, as far as its places or the words of its owner say so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from vramscope.holders.classes import attributes_of, class_of
from vramscope.holders.step_names import count_of, has_attributes

BOUNDS: Final = frozenset(
    (
        *("capacity", "limit", "maxsize", "maxlen", "maxlength", "maxentries", "maxitems"),
        *("maxcapacity", "buffersize", "cachesize", "memorysize", "poolsize", "queuesize"),
        *("replaysize", "buffercapacity", "cachecapacity", "memorycapacity", "replaycapacity"),
    )
)
"""What people call it, without underscores."""
_LIST: Final[Any] = list
_MOST_ATTRIBUTES: Final = 1_000
_MOST_LOOKED_AT: Final = 100_000
_FAR: Final = 4
"""So many places above a container its owner may be: a list in a dictionary of an object."""


def bound_words(way: Sequence[Any], container: int) -> str:
    """``capacity=1000`` of its owner, ``empty=940`` of its places; empty if nothing is known.

    Args:
        way: objects from the first that a name leads to down to a tensor.
        container: position of the one that is asked about.
    """
    value = way[container]
    size = count_of(value)
    if not size:
        return ""
    if issubclass(class_of(value), list):
        empty = sum(each is None for each in islice(_LIST.__iter__(value), _MOST_LOOKED_AT))
        if empty:
            return f"empty={empty}"
    for owner in reversed(way[max(container - _FAR, 0) : container + 1]):
        if has_attributes(owner):
            return _of_owner(owner, size)
    return ""


def _of_owner(owner: Any, size: int) -> str:
    """The smallest number with such a name that has room for what is there."""
    found = [
        (value, str(name))
        for name, value in islice(list(attributes_of(owner).items()), _MOST_ATTRIBUTES)
        if class_of(value) is int and class_of(name) is str and value >= size
        # A name with two underscores has its class before them.
        if name.rpartition("__")[2].strip("_").replace("_", "").lower() in BOUNDS
    ]
    if not found:
        return ""
    value, name = min(found)
    return f"{name.rpartition('__')[2].strip('_')}={value}"
