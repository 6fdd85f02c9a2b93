"""Live tensors that no step works with: old models, loaded states, what an error has left."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field, structs

from vramscope.growth.optimizers_in_use import tensors_in_use
from vramscope.growth.tensor_writes import (
    WATCHED_STEPS,
    Written,
    are_written,
    written_until_now,
)
from vramscope.holders.classes import attributes_of, class_of
from vramscope.holders.clusters import Way
from vramscope.holders.holder import HolderFound
from vramscope.holders.live_tensors import words_of
from vramscope.holders.naming import name_way
from vramscope.holders.reach import Reach
from vramscope.holders.search import ways_within
from vramscope.holders.step_names import container_words
from vramscope.holders.time_box import TimeBox
from vramscope.tensors.census import Storage
from vramscope.tensors.module_paths import named_places, roots_of

MAX_GROUPS: Final = 10
MAX_TENSORS: Final = 400
"""The largest of them; the others are left out."""
LEAST_BYTES: Final = 1 << 20
"""What is less altogether is not worth a word."""


class IdleGroup(Struct):
    """Tensors that one name holds.

    Args:
        category: ``parameters``, ``buffers``, ``gradients``, ``optimizer_state`` or empty.
        members: how often each of them had been written. Not in a report.
        is_written: whether one has been since; ``None`` is not known.
    """

    bytes: int
    count: int
    tensors: list[str]
    holder: HolderFound
    category: str
    members: list[Written] = field(default_factory=list[Written])
    is_written: bool | None = None


class IdleTensors:
    """Finds them among what names lead to. On the training thread, at a boundary.

    Args:
        reach: a search that is over.
        storage: finds a tensor's storage on the device.
        births: when the block at an address came: 0 and less is before the first look.
        box: names are looked for no longer than it.
    """

    def __init__(
        self, reach: Reach, storage: Storage, births: Mapping[int, int], box: TimeBox
    ) -> None:
        self._reach = reach
        self._storage = storage
        self._births = births
        self._box = box
        torch: Any = sys.modules["torch"]
        self._module: Any = torch.nn.Module
        self._optimizer: Any = torch.optim.Optimizer
        self._category_of: dict[int, str] = {}
        """By the id of a tensor that belongs to something idle."""
        self._of_container: dict[tuple[int, str], tuple[HolderFound, str]] = {}
        """By the number of a container whose members all have its name."""

    def find(self, tensors: Iterable[int], optimizers: Iterable[Any]) -> list[IdleGroup]:
        """Groups by the name that holds them, the largest first.

        Args:
            tensors: numbers of plain tensors.
            optimizers: those that step the job's parameters.
        """
        stepped, states = tensors_in_use(optimizers)
        in_use = self._look_at_modules(stepped) | stepped | states
        found: dict[int, tuple[int, Any, int]] = {}
        for number in tensors:
            tensor = self._reach.objects[number]
            if id(tensor) not in in_use:
                self._note(found, tensor, number)
                gradient = tensor.grad if tensor.is_leaf and tensor.requires_grad else None
                if gradient is not None:
                    self._category_of.setdefault(id(gradient), "gradients")
                    self._note(found, gradient, number)
        largest = sorted(found.values(), key=lambda each: -each[0])[:MAX_TENSORS]
        return self._grouped(largest)

    def _note(self, found: dict[int, tuple[int, Any, int]], tensor: Any, number: int) -> None:
        place = self._storage(tensor)
        # What came since may be what the step that has just ended worked with.
        if place is not None and place[1] and self._births.get(place[0], 1) <= 0:
            found.setdefault(place[0], (place[1], tensor, number))

    def _look_at_modules(self, stepped: set[int]) -> set[int]:
        """Ids of the tensors of models in use: some of whose parameters are stepped."""
        modules = [each for each in self._reach.objects if issubclass(class_of(each), self._module)]
        in_use = _made_by_forward(modules, stepped)
        for root in roots_of(modules):
            places = named_places([root])
            is_stepped = any(id(place.tensor) in stepped for place in places)
            if is_stepped or _is_average(root):
                in_use.update(id(place.tensor) for place in places)
                continue
            for place in places:
                category = "parameters" if place.is_parameter else "buffers"
                self._category_of[id(place.tensor)] = category
        return in_use

    def _grouped(self, tensors: Sequence[tuple[int, Any, int]]) -> list[IdleGroup]:
        members: dict[tuple[str, ...], list[tuple[int, Any]]] = {}
        holders: dict[tuple[str, ...], tuple[HolderFound, str]] = {}
        for size_bytes, tensor, number in tensors:
            if self._box.is_over:
                break
            holder, category = self._holder(number, tensor)
            # It was made once and kept: the statement that sets it counts, too.
            holder.targets = [structs.replace(each, is_single=True) for each in holder.targets]
            key = (category, holder.kind, *holder.chain)
            holders.setdefault(key, (holder, category))
            members.setdefault(key, []).append((size_bytes, tensor))
        groups: list[IdleGroup] = []
        for key, each in members.items():
            holder, category = holders[key]
            holder.tensors = len(each)
            size_bytes = sum(size for size, _ in each)
            if size_bytes >= LEAST_BYTES:
                words = words_of(tensor for _, tensor in each)
                group = IdleGroup(size_bytes, len(each), words, holder, category)
                group.members = written_until_now(tensor for _, tensor in each)
                groups.append(group)
        return sorted(groups, key=lambda group: -group.bytes)[:MAX_GROUPS]

    def _holder(self, number: int, tensor: Any) -> tuple[HolderFound, str]:
        """The name of the outermost module or optimizer around it, else that of its container."""
        category = self._category_of.get(id(tensor), "")
        ways = ways_within(self._reach, number)
        key = (ways[0].path[-2] if len(ways) == 1 < len(ways[0].path) else -1, category)
        known = self._of_container.get(key)
        if known is None:
            known = self._name(ways, category)
            if key[0] >= 0 and self._has_one_name(ways[0]):
                self._of_container[key] = known
        return known

    def _has_one_name(self, way: Way) -> bool:
        """Whether the container of a tensor is called by its size, whichever member it is."""
        *above, container = (self._reach.objects[number] for number in way.path[-3:-1])
        is_of_attributes = bool(above) and attributes_of(above[0]) is container
        return bool(container_words(container)) and not is_of_attributes

    def _name(self, ways: Sequence[Way], category: str) -> tuple[HolderFound, str]:
        # A parameter is its module's rather than its optimizer's.
        owner = self._module if category else self._optimizer
        for way in ways:
            objects = [self._reach.objects[each] for each in way.path]
            for position, each in enumerate(objects):
                if issubclass(class_of(each), owner):
                    name = name_way(objects[: position + 1], max(0, position - 1), way.root, 2)
                    return name, category or "optimizer_state"
        objects = [self._reach.objects[each] for each in ways[0].path]
        return name_way(objects, max(0, len(objects) - 2), ways[0].root, 2), category


def note_writes(groups: Iterable[IdleGroup], steps: int) -> None:
    """Note of which it is known whether they are written to.

    Args:
        groups: as they were found.
        steps: how many have ended since.
    """
    for group in groups:
        is_written = are_written(group.members)
        # That nobody wrote in a few steps says nothing.
        group.is_written = is_written if steps >= WATCHED_STEPS else is_written or None


def _is_average(module: Any) -> bool:
    """Whether it is PyTorch's average of a model, which may be updated once in an epoch."""
    kind = class_of(module)
    return any(
        (base.__module__, base.__name__) == ("torch.optim.swa_utils", "AveragedModel")
        for base in kind.__mro__
    )


def _made_by_forward(modules: Iterable[Any], stepped: set[int]) -> set[int]:
    """Ids of attributes that a forward makes anew of parameters that are stepped.

    Pruning, weight and spectral normalisation make ``weight`` of ``weight_orig``, ``weight_g`` and
    the like.
    """
    made: set[int] = set()
    for module in modules:
        attributes = attributes_of(module)
        own: Any = attributes.get("_parameters")
        if class_of(own) is not dict:
            continue
        names = [name for name, each in list(own.items()) if id(each) in stepped]
        made.update(
            id(value)
            for name, value in list(attributes.items())
            if any(each.startswith(f"{name}_") for each in names)
        )
    return made
