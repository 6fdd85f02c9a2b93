"""Finds what holds tensors: by the names of the job that they are reached from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from vramscope.holders.holder import HolderFound
from vramscope.holders.live_tensors import looking
from vramscope.holders.naming import name_way
from vramscope.holders.reach import Reach

LIMIT_S: Final = 0.25

Ways: TypeAlias = "list[tuple[list[int], int | None]]"
"""Each way to a tensor, as numbers of a reach, with the last step where it is not the first way."""


def holders_of(
    tensors: Sequence[Any], births: Sequence[int] = (), *, limit_s: float = LIMIT_S
) -> list[HolderFound]:
    """What holds tensors, the holder of the most first. On the training thread, or under the GIL.

    Args:
        tensors: a few of them.
        births: when each came, as a number that rises, if that is known.
        limit_s: how long to look.
    """
    reach = Reach(limit_s)
    try:
        with looking():
            wanted = {id(tensor): place for place, tensor in enumerate(tensors)}
            reach.search(lambda value: id(value) in wanted)
            born = {
                number: births[wanted[id(reach.objects[number])]] if births else 0
                for number in reach.found
            }
            return holders_within(reach, born)
    finally:
        reach.clear()


def holders_within(reach: Reach, born: Mapping[int, int]) -> list[HolderFound]:
    """The same, for a search that is over.

    Args:
        reach: what was found.
        born: when each of the tensors came, by their numbers.
    """
    ways: dict[int, Ways] = {}
    for number in born:
        ways[number] = [(reach.path_to(number), None)]
        for parent in reach.also.get(number, ()):
            if parent != reach.parents[number]:
                ways[number].append((reach.path_to(number, parent), parent))
    found: list[HolderFound] = []
    while ways:
        found.append(_largest_holder(reach, ways, born))
    return sorted(found, key=lambda holder: -holder.tensors)


def _largest_holder(reach: Reach, ways: dict[int, Ways], born: Mapping[int, int]) -> HolderFound:
    """Find the container that most of the tensors lie in side by side, and take them out."""
    below: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    depth: dict[int, int] = {}
    for number, each in ways.items():
        for path, _ in each:
            for position in range(len(path) - 1):
                below[path[position]][path[position + 1]].add(number)
                depth[path[position]] = position
    if not below:  # each is a variable itself
        number, each = next(iter(ways.items()))
        del ways[number]
        path, parent = each[0]
        return _named(reach, path, 0, parent, 1, None)
    best = max(below, key=lambda holder: (*_spread(below[holder], born), depth[holder]))
    members: set[int] = set[int]().union(*below[best].values())
    first = next(iter(members))
    path, parent = next((p, q) for p, q in ways[first] if best in p)
    for number in members:
        del ways[number]
    births = {born[number] for number in members}
    is_growing = True if _spread(below[best], born)[0] > 1 and len(births) > 1 else None
    return _named(reach, path, path.index(best), parent, len(members), is_growing)


def _spread(children: Mapping[int, Iterable[int]], born: Mapping[int, int]) -> tuple[int, int]:
    """From how many times what a container holds is, and in how many places of it.

    What grows is the container into which something came again and again: each time to a new
    place of it. Of nested ones it is that one, not the one that it lies in, nor what it holds.
    """
    times = {min(born[number] for number in members) for members in children.values()}
    return len(times), len(children)


def _named(
    reach: Reach,
    path: list[int],
    container: int,
    parent: int | None,
    tensors: int,
    is_growing: bool | None,
) -> HolderFound:
    way = [reach.objects[number] for number in path]
    holder = name_way(way, container, reach.root_of(path, parent), tensors)
    holder.is_growing = is_growing
    return holder
