"""How full a container is that takes only so many: as its words in a growth report say it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_BOUND: Final = re.compile(r"^(\w+)\((\w+)=(\d{1,18})\) of (\d{1,18})$")
_MODULES: Final = re.compile(r"^(?:dict|OrderedDict) of \d{1,18}$")
_LRU_CACHE: Final = "lru_cache"
_EMPTY: Final = "empty"
_OF_ITSELF: Final = ("maxlen", _EMPTY)


@dataclass(frozen=True)
class Bound:
    """How many a container has, and takes.

    Args:
        filled: there are so many in it; 0 is not known.
        most: it takes so many.
        word: what its owner calls that: ``capacity``; empty where its places are there already.
        is_sure: whether the container says so itself; else somebody has to keep to it.
        is_of_calls: an ``lru_cache``, of which each entry may keep anything.
    """

    filled: int
    most: int
    word: str = ""
    is_sure: bool = False
    is_of_calls: bool = False


def bound_of(chain: Sequence[str]) -> Bound | None:
    """The bound of the first container of a chain that has one.

    Args:
        chain: from a name to a tensor: ``Agent.replay``, ``list(capacity=1000) of 60``.
    """
    for place, piece in enumerate(chain):
        if _are_parts(chain[:place], piece, chain[place + 1 :]):
            return Bound(0, int(piece.rpartition(" ")[2]), is_sure=True)
        found = _BOUND.match(piece)
        if found is None:
            continue
        kind, word, number, count = found[1], found[2], int(found[3]), int(found[4])
        if word == _EMPTY:
            return Bound(max(count - number, 0), count, "", is_sure=True)
        is_of_calls = kind == _LRU_CACHE
        is_sure = word in _OF_ITSELF and not is_of_calls
        return Bound(count, number, word, is_sure, is_of_calls)
    return None


def _are_parts(above: Sequence[str], piece: str, below: Sequence[str]) -> bool:
    """Whether it is the parts of a model, which get something once each: a mask when it is pruned.

    Where parameters come, it is more and more parts.
    """
    if not above or not above[-1].endswith("._modules") or not _MODULES.match(piece):
        return False
    return not any(word.endswith("._parameters") for word in below)
