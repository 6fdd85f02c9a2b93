"""Tensors with a history that gets longer and longer, or of which there are more and more.

What autograd has saved for the backward pass has no object in Python. So what keeps it is found by
the tensors whose graphs it may belong to: by the number of nodes, which are walked and not opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct, field, structs

from vramscope.holders.clusters import clusters
from vramscope.holders.graphs import MAX_NODES, graph_nodes
from vramscope.holders.holder import HolderFound
from vramscope.holders.reach import Reach
from vramscope.holders.search import named_within, ways_within
from vramscope.holders.time_box import TimeBox

LIMIT_S: Final = 0.02
MAX_TENSORS: Final = 200


class Graphs(Struct):
    """Holders of tensors with graphs, with the nodes of those at one moment."""

    holders: list[HolderFound] = field(default_factory=list[HolderFound])
    nodes: list[int] = field(default_factory=list[int])
    """Of all tensors that each holds."""

    def growth_since(self, before: Graphs) -> list[tuple[int, HolderFound]]:
        """Those that had fewer nodes before, with how many more, the largest growth first.

        One of which only so many nodes were counted both times is told as well.
        """
        known = {
            _key(each): nodes for each, nodes in zip(before.holders, before.nodes, strict=True)
        }
        found: list[tuple[int, HolderFound]] = []
        for holder, nodes in zip(self.holders, self.nodes, strict=True):
            grown = nodes - known.get(_key(holder), nodes)
            if grown > 0 or holder.is_growing:
                found.append((max(0, grown), structs.replace(holder, is_growing=True)))
            elif nodes >= MAX_NODES:
                found.append((0, holder))
        return sorted(found, key=lambda each: -each[0])

    def grown_since(self, before: Graphs) -> list[HolderFound]:
        """The same without the numbers."""
        return [holder for _, holder in self.growth_since(before)]


def graph_holders(
    reach: Reach,
    tensors: Sequence[int],
    birth_of: Callable[[Any], int | None],
    limit_s: float = LIMIT_S,
) -> Graphs:
    """Count the graphs of tensors, and say what holds them.

    Args:
        reach: what names lead to.
        tensors: numbers of those that have a graph.
        birth_of: when a tensor came, as a number that rises, where that is known.
        limit_s: how long to count.
    """
    box = TimeBox(limit_s)
    nodes: dict[int, int] = {}
    for number in tensors[-MAX_TENSORS:]:
        if box.is_over:
            break
        nodes[number] = graph_nodes(reach.objects[number], box)
    born = {number: birth_of(reach.objects[number]) or 0 for number in nodes}
    found = Graphs()
    ways = {number: ways_within(reach, number) for number in nodes}
    for cluster in clusters(ways, born, reach.above):
        holder = named_within(reach, cluster)
        sizes = [nodes[member] for member in cluster.members]
        holder.kind = "autograd_graph"
        holder.chain.append(_words(sizes))
        if len(sizes) == 1:
            # What makes its graph longer is the statement that uses its own value.
            holder.targets = [structs.replace(each, is_single=False) for each in holder.targets]
        found.holders.append(holder)
        found.nodes.append(sum(sizes))
    return found


def _words(sizes: Sequence[int]) -> str:
    more = "more than " if max(sizes) >= MAX_NODES else ""
    if len(sizes) == 1:
        return f"graph of {more}{sizes[0]} nodes"
    return f"graphs of {min(sizes)} to {more}{max(sizes)} nodes"


def _key(holder: HolderFound) -> tuple[str, ...]:
    """The name that it begins with; numbers in the rest of the chain change."""
    line = holder.frame
    return (holder.chain[0], "" if line is None else f"{line.file}:{line.function}")
