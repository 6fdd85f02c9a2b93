"""Finds the tensors that lie in growing blocks, and what holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field, structs

from vramscope.growth.groups import Group
from vramscope.growth.host_tensors import HostTensors, host_tensors
from vramscope.growth.idle_tensors import IdleGroup, IdleTensors
from vramscope.growth.samples import sample_addresses
from vramscope.holders.graph_holders import LIMIT_S, Graphs, graph_holders
from vramscope.holders.holder import HolderFound
from vramscope.holders.live_tensors import (
    TensorClasses,
    looking,
    tensor_words,
    tensors_at,
    words_of,
)
from vramscope.holders.reach import Reach
from vramscope.holders.search import holders_within
from vramscope.holders.time_box import TimeBox
from vramscope.holders.unreached import Above
from vramscope.tensors.census import Storage

_MOST_ABOVE: Final = 24
"""Samples of all groups that the search upwards begins with, ..."""
_LEAST_ABOVE: Final = 4
"""... and of each group at least."""
_MOST_GRAPHS: Final = 2
_UNKNOWN: Final = HolderFound("unknown")

Sample = Mapping[int, int]
"""Addresses of blocks, with the number of the time in which each came."""


class Held(Struct):
    """What was found for one group."""

    tensors: list[str] = field(default_factory=list[str])
    holders: list[HolderFound] = field(default_factory=list[HolderFound])
    garbage: int = 0
    """Samples that only wait for the collector."""
    found: int = 0
    """Samples that were found in Python."""
    missing: dict[int, int] = field(default_factory=dict[int, int])
    """Those that were not."""


class GroupHolders:
    """Looks for samples of all groups at once. On the training thread, at a boundary.

    Args:
        storage: finds a tensor's storage on the device.
        births: when the block at an address came, as a number that rises.
        limit_s: how long to look.
    """

    def __init__(self, storage: Storage, births: Mapping[int, int], limit_s: float) -> None:
        self._storage = storage
        self._births = births
        self._box = TimeBox(limit_s)
        self._classes = TensorClasses()
        self._plain: list[int] = []
        self._elsewhere: list[int] = []
        self._with_graph: list[int] = []
        self._with_gradient: list[int] = []
        self.graphs = Graphs()
        self.host = HostTensors()
        """Tensors on the host, if they were asked for."""
        self.idle: list[IdleGroup] = []
        """Live tensors that no step works with, where those on the host were not asked for."""
        self.notes: list[str] = []
        self.ran_out = False
        """Whether it was ended by the time that it was given."""
        self.saw_all = False
        """Whether all of Python was looked through for what no name leads to."""
        self.objects = 0
        """How many objects were looked at."""

    def find(
        self,
        groups: Sequence[Group],
        optimizers: Sequence[Any] = (),
        *,
        upwards: bool,
        host: HostTensors | None = None,
    ) -> list[Held]:
        """What holds each group, in their order.

        Args:
            groups: are looked into.
            optimizers: those that step the job's parameters.
            upwards: also look for what no name leads to, which is dear.
            host: tensors on the host as they were before, to look at them as well.
        """
        samples = [sample_addresses(group) for group in groups]
        wanted = {address for each in samples for address in each}
        reach = Reach(self._box.left_s)
        try:
            with looking():
                reach.search(lambda value: self._sees(value, wanted))
                held = [self._held(reach, each) for each in samples]
                self._take_gradients(reach, held)
                with_graph = self._numbers(reach, self._with_graph)
                limit_s = min(LIMIT_S, self._box.left_s)
                self.graphs = graph_holders(reach, with_graph, self._birth_of, limit_s)
                if host is not None:
                    elsewhere = self._numbers(reach, self._elsewhere)
                    self.host = host_tensors(reach, elsewhere, host)
                else:
                    idle = IdleTensors(reach, self._storage, self._births, self._box)
                    self.idle = idle.find(self._numbers(reach, self._plain), optimizers)
                if upwards and any(each.missing for each in held):
                    self._look_upwards(reach, held)
                return held
        finally:
            self.ran_out = self._box.is_over
            self.objects = len(reach.objects)
            if not reach.is_complete:
                self.notes.append(f"the search for holders ended after {self.objects:,} objects")
            reach.clear()

    def _sees(self, value: Any, wanted: set[int]) -> bool:
        """Whether an object is a tensor in one of the blocks; others of interest are noted."""
        if not self._classes.is_plain(value):
            return False
        self._plain.append(id(value))
        if value.grad_fn is not None:
            self._with_graph.append(id(value))
        elif value.requires_grad:
            self._with_gradient.append(id(value))
        place = self._storage(value)
        if place is None:
            self._elsewhere.append(id(value))
            return False
        return place[0] in wanted

    def _held(self, reach: Reach, sample: Sample) -> Held:
        born: dict[int, int] = {}
        missing = dict(sample)
        for number in reach.found:
            place = self._storage(reach.objects[number])
            if place is not None and place[0] in sample:
                born[number] = sample[place[0]]
                missing.pop(place[0], None)
        tensors = words_of(reach.objects[number] for number in born)
        return Held(tensors, holders_within(reach, born), found=len(born), missing=missing)

    def _take_gradients(self, reach: Reach, held: Sequence[Held]) -> None:
        """Gradients are reached by their parameters alone: C++ holds them."""
        group_of = {address: at for at, each in enumerate(held) for address in each.missing}
        if not group_of:
            return
        born: list[dict[int, int]] = [{} for _ in held]
        for number in self._numbers(reach, self._with_gradient):
            gradient = reach.objects[number].grad
            if gradient is None or not self._classes.is_plain(gradient):
                continue
            place = self._storage(gradient)
            at = None if place is None else group_of.get(place[0])
            if place is None or at is None:
                continue
            born[at][number] = held[at].missing.pop(place[0])
            held[at].tensors = held[at].tensors or [tensor_words(gradient)]
        for each, of_group in zip(held, born, strict=True):
            for holder in holders_within(reach, of_group):
                holder.chain.append(".grad")
                each.holders.append(holder)
            each.found += len(of_group)

    def _look_upwards(self, reach: Reach, held: Sequence[Held]) -> None:
        """Look for the missing samples among all objects, and at who refers to them."""
        group_of = {address: at for at, each in enumerate(held) for address in each.missing}
        at_address = tensors_at(set(group_of), self._storage, self._box)
        self.saw_all = len(at_address) == len(group_of) or not self._box.is_over
        if not self.saw_all:
            self.notes.append("not every object of Python could be looked at in time")
        tensors: list[Any] = []
        samples: list[tuple[int, int, int]] = []
        for at, each in enumerate(held):
            mine = [address for address in each.missing if address in at_address]
            mine = mine[: max(_LEAST_ABOVE, _MOST_ABOVE // len(held))]
            tensors += [at_address[address] for address in mine]
            samples += [(at, address, each.missing.pop(address)) for address in mine]
            each.found += len(mine)
            each.tensors = each.tensors or words_of(at_address[address] for address in mine)
        # Or what is to be judged would be alive by it.
        at_address.clear()
        above = Above(reach, tensors, [birth for _, _, birth in samples], self._box.left_s)
        for at, each in enumerate(held):
            mine = [place for place, sample in enumerate(samples) if sample[0] == at]
            each.holders += above.holders(mine)
            each.garbage += len(above.garbage.intersection(mine))
            # Nothing in Python refers to these: they are what C++ holds.
            for place in above.alone.intersection(mine):
                _, address, birth = samples[place]
                each.missing[address] = birth
                each.found -= 1
        above.clear()
        if not above.is_complete:
            self.notes.append("the search upwards for holders was ended by its limits")

    def _numbers(self, reach: Reach, ids: Sequence[int]) -> list[int]:
        return [reach.number_of[each] for each in ids if each in reach.number_of]

    def _birth_of(self, tensor: Any) -> int | None:
        place = self._storage(tensor)
        return None if place is None else self._births.get(place[0])


def name_missing(
    held: Held, graphs: Sequence[HolderFound], shared: set[int], *, was_searched: bool
) -> None:
    """Say what holds the samples that have no object in Python.

    Args:
        held: of one group.
        graphs: tensors whose graphs grow.
        shared: addresses that were given to another process.
        was_searched: whether all of Python was looked through.
    """
    sent = [address for address in held.missing if address in shared]
    if sent:
        chain = ["CUDA IPC (another process)"]
        held.holders.append(HolderFound("ipc", chain, tensors=len(sent), is_growing=True))
    rest = len(held.missing) - len(sent)
    if rest and graphs:
        for holder in graphs[:_MOST_GRAPHS]:
            held.holders.append(structs.replace(holder, tensors=rest))
    elif rest:
        found = HolderFound("cpp", ["no object in Python"]) if was_searched else _UNKNOWN
        held.holders.append(structs.replace(found, tensors=rest))
    held.holders.sort(key=_weight)


def _weight(holder: HolderFound) -> tuple[int, bool]:
    """That of the most first, and rather what is known to grow, or to be garbage."""
    return (-holder.tensors, not (holder.is_growing or holder.kind == "garbage"))
