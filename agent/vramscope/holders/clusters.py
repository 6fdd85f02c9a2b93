"""Which container holds many tensors side by side: the one that grows when more of them come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from vramscope.holders.reach import Root


class Way(NamedTuple):
    """Objects, by some number, from the first that a name leads to down to a tensor."""

    path: list[int]
    root: Root | None


class Cluster(NamedTuple):
    """Tensors that one container holds.

    Args:
        way: to one of them.
        container: its position in that way.
        members: all of them.
        is_growing: True if they came at different times; None is not known.
    """

    way: Way
    container: int
    members: set[int]
    is_growing: bool | None


def clusters(
    ways: Mapping[int, list[Way]],
    born: Mapping[int, int],
    above: Callable[[int], Collection[int]] = lambda number: (),
) -> list[Cluster]:
    """Divide tensors among their containers, that with the most first.

    Args:
        ways: of each tensor the short ones that are known.
        born: when each came, as a number that rises.
        above: all that leads to a tensor. One that a variable holds besides counts for the
            container, too, if that holds several.
    """
    left = dict(ways)
    found: list[Cluster] = []
    while left:
        cluster = _largest(left, born)
        if len(cluster.members) > 1:
            holder = cluster.way.path[cluster.container]
            cluster.members.update(number for number in left if holder in above(number))
        found.append(cluster)
        for member in cluster.members:
            del left[member]
    return sorted(found, key=lambda cluster: -len(cluster.members))


def _largest(ways: Mapping[int, list[Way]], born: Mapping[int, int]) -> Cluster:
    below: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    depth: dict[int, int] = {}
    for number, each in ways.items():
        for way in each:
            for position in range(len(way.path) - 1):
                holder, held = way.path[position], way.path[position + 1]
                below[holder][held].add(number)
                depth[holder] = position
    if not below:  # each is a variable itself
        number, each = next(iter(ways.items()))
        return Cluster(each[0], 0, {number}, None)
    best = max(below, key=lambda holder: (*_spread(below[holder], born), depth[holder]))
    members: set[int] = set[int]().union(*below[best].values())
    way = next(way for way in ways[min(members)] if best in way.path)
    is_growing = True if _spread(below[best], born)[0] > 1 else None
    return Cluster(way, way.path.index(best), members, is_growing)


def _spread(children: Mapping[int, Iterable[int]], born: Mapping[int, int]) -> tuple[int, int]:
    """From how many times what a container holds is, and in how many places of it.

    What grows is the container into which something came again and again: each time to a new
    place of it. Of nested ones it is that one, not the one that it lies in, nor what it holds.
    """
    times = {min(born[number] for number in members) for members in children.values()}
    return len(times), len(children)
