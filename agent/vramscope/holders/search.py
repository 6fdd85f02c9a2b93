"""Finds what holds tensors: by the names of the job that they are reached from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vramscope.holders.clusters import Cluster, Way, clusters
from vramscope.holders.holder import HolderFound
from vramscope.holders.naming import name_way
from vramscope.holders.reach import Reach

_MAX_WAYS: Final = 20


def holders_within(reach: Reach, born: Mapping[int, int]) -> list[HolderFound]:
    """What holds tensors, the holder of the most first. On the training thread, or under the GIL.

    Args:
        reach: a search that is over.
        born: when each of the tensors came, as a number that rises, by their numbers.
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
