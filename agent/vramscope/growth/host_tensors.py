"""What grows in host memory, as far as names lead to it: tensors on the host, and graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from vramscope.holders.clusters import clusters
from vramscope.holders.graph_holders import Graphs
from vramscope.holders.holder import HolderFound
from vramscope.holders.live_tensors import words_of
from vramscope.holders.reach import Reach
from vramscope.holders.search import named_within, ways_within

MAX_TENSORS: Final = 2_000
MAX_GROUPS: Final = 5
TENSORS: Final = "torch.Tensor (cpu)"
GRAPHS: Final = "autograd graph"


class HostGroup(Struct):
    """What one name holds more of."""

    type: str
    bytes: int | None
    """Of tensors; of nodes of a graph it is not known."""
    count: int
    tensors: list[str]
    holder: HolderFound


class HostTensors(Struct):
    """Tensors on the host at one moment: by the name of their holder, bytes and how many."""

    ids: set[int] = field(default_factory=set[int])
    found: dict[tuple[str, ...], tuple[int, int]] = field(
        default_factory=dict[tuple[str, ...], tuple[int, int]]
    )
    groups: dict[tuple[str, ...], HostGroup] = field(
        default_factory=dict[tuple[str, ...], HostGroup]
    )

    def grown_since(self, before: HostTensors) -> list[HostGroup]:
        """Holders that have more than they had, the largest growth first."""
        grown: list[HostGroup] = []
        for key, group in self.groups.items():
            was_bytes, was_count = before.found.get(key, (0, 0))
            now_bytes, now_count = self.found[key]
            group.bytes, group.count = now_bytes - was_bytes, now_count - was_count
            if group.bytes > 0 and group.count > 0:
                group.holder.is_growing = True
                grown.append(group)
        return sorted(grown, key=lambda group: -(group.bytes or 0))[:MAX_GROUPS]


def host_tensors(reach: Reach, tensors: Iterable[int], before: HostTensors) -> HostTensors:
    """Sum up tensors on the host by what holds them.

    Args:
        reach: a search that is over.
        tensors: numbers of plain tensors that are not on the device.
        before: those of an earlier moment: what is not among them has come since.
    """
    numbers = list(tensors)[-MAX_TENSORS:]
    found = HostTensors()
    sizes: dict[int, int] = {}
    addresses: set[int] = set()
    for number in numbers:
        tensor = reach.objects[number]
        if tensor.device.type != "cpu":
            continue
        found.ids.add(id(tensor))
        storage = tensor.untyped_storage()
        # Not that of its data: of a lazily cloned tensor the question would make the copy.
        address = storage._cdata
        if address not in addresses:
            addresses.add(address)
            sizes[number] = storage.nbytes()
    born = {number: int(id(reach.objects[number]) not in before.ids) for number in sizes}
    ways = {number: ways_within(reach, number) for number in sizes}
    for cluster in clusters(ways, born, reach.above):
        holder = named_within(reach, cluster)
        key = _key(holder)
        size_bytes = sum(sizes[member] for member in cluster.members)
        had_bytes, had_count = found.found.get(key, (0, 0))
        found.found[key] = (had_bytes + size_bytes, had_count + len(cluster.members))
        if key not in found.groups:
            words = words_of(reach.objects[member] for member in cluster.members)
            words = [f"{each} cpu" for each in words]
            found.groups[key] = HostGroup(TENSORS, 0, 0, words, holder)
    return found


def grown_graphs(now: Graphs, before: Graphs) -> list[HostGroup]:
    """Graphs that have more nodes than they had, the largest growth first."""
    grown = now.growth_since(before)
    return [HostGroup(GRAPHS, None, nodes, [], holder) for nodes, holder in grown[:MAX_GROUPS]]


def _key(holder: HolderFound) -> tuple[str, ...]:
    line = holder.frame
    return (holder.kind, holder.chain[0], "" if line is None else line.function)
