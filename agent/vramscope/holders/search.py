"""Finds what holds tensors: by the names of the job that they are reached from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vramscope.holders.clusters import Cluster, Way, clusters
from vramscope.holders.holder import HolderFound
from vramscope.holders.live_tensors import looking
from vramscope.holders.naming import name_way
from vramscope.holders.reach import Reach

LIMIT_S: Final = 0.25
_MAX_WAYS: Final = 20


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
            found = holders_within(reach, born)
    finally:
        reach.clear()
    for holder in found:
        holder.targets.clear()  # no source is read here
    return found


def holders_within(reach: Reach, born: Mapping[int, int]) -> list[HolderFound]:
    """The same, for a search that is over.

    Args:
        reach: what was found.
        born: when each of the tensors came, by their numbers.
    """
    ways = {number: ways_within(reach, number) for number in born}
    return [named_within(reach, cluster) for cluster in clusters(ways, born, reach.above)]


def ways_within(reach: Reach, number: int) -> list[Way]:
    """All ways by which an object was reached."""
    first = reach.path_to(number)
    ways = [Way(first, reach.root_of(first))]
    for parent in reach.also.get(number, ())[:_MAX_WAYS]:
        if parent != reach.parents[number]:
            path = reach.path_to(number, parent)
            ways.append(Way(path, reach.root_of(path, parent)))
    return ways


def named_within(reach: Reach, cluster: Cluster) -> HolderFound:
    """A container in words."""
    way = [reach.objects[number] for number in cluster.way.path]
    holder = name_way(way, cluster.container, cluster.way.root, len(cluster.members))
    holder.is_growing = cluster.is_growing
    return holder
