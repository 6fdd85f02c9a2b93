"""One count of the memory of parameters, gradients, optimizer state and buffers, by storage.

A storage counts once, whoever shares it: for the first of parameters, buffers, gradients and
optimizer state that it is found in. Nothing that is looked at is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from vramscope.tensors.category import BUFFERS, GRADIENTS, OPTIMIZER_STATE, PARAMETERS
from vramscope.tensors.leaves import Leaves
from vramscope.tensors.module_paths import Place, named_places
from vramscope.tensors.owners import Owned

BLOCK_BYTES: Final = 512
"""The allocator rounds every request up to a multiple of this."""

MIN_FLAT_MASTER: Final = 1024

Name = Callable[[], str]
"""Makes the name of an owner, where it is wanted."""

Storage = Callable[[Any], "tuple[int, int] | None"]
"""Address and size of a tensor's storage on the device, ``None`` if it is not there."""


class Census:
    """Counts what is given to it.

    Args:
        storage: finds a tensor's storage.
        names: whether to note the owner of each storage.
    """

    def __init__(self, storage: Storage, *, names: bool = False) -> None:
        self._storage = storage
        self._names = names
        self._leaves: Leaves
        self._code = 0
        self._name: Name = str
        self._addresses: set[int] = set()
        self._owner_of: dict[int, str] = {}
        self.bytes_of: dict[int, int] = dict.fromkeys(
            (PARAMETERS, GRADIENTS, OPTIMIZER_STATE, BUFFERS), 0
        )
        """Bytes by category, in whole blocks."""
        self.tensors = 0
        """Tensors looked at."""
        self.owned: list[Owned] = []
        """Every storage with its owner, if names were asked for."""

    def count(self, modules: Iterable[Any], optimizers: Iterable[Any]) -> None:
        """Count everything that belongs to modules and optimizers."""
        places = named_places(modules)
        stepped = [list(parameters_of(optimizer)) for optimizer in optimizers]
        with self._looking():
            parameters = self._count_parameters(places, stepped)
            for place in places:
                if not place.is_parameter:
                    self._take(BUFFERS, place.tensor, place.name)
            self._count_gradients(parameters)
            for optimizer in optimizers:
                self._count_state(optimizer)

    def count_gradients(self, modules: Iterable[Any], optimizers: Iterable[Any]) -> int:
        """Count the gradients alone.

        Returns:
            Their bytes.
        """
        places = [place.tensor for place in named_places(modules) if place.is_parameter]
        owned = set(map(id, places))
        for optimizer in optimizers:
            places += [each for each in parameters_of(optimizer) if id(each) not in owned]
        with self._looking():
            for parameter in places:
                self._take_gradients(parameter, str)
        return self.bytes_of[GRADIENTS]

    @contextmanager
    def _looking(self) -> Generator[None]:
        self._leaves = Leaves(self._count)
        try:
            # Neither subclasses nor modes of the job get to see that their tensors are looked at.
            with sys.modules["torch"]._C.DisableTorchFunction():
                yield
        finally:
            # A cycle with this object, which holds the tensor looked at last: both would stay
            # until a garbage collection, and for good in a job that has turned that off.
            del self._leaves
            self._name = str

    def _count_parameters(self, places: list[Place], stepped: list[list[Any]]) -> list[Any]:
        """Count parameters, and master copies of them as what they are. Returns all of them."""
        owned = {id(place.tensor): place for place in places if place.is_parameter}
        in_optimizers = {id(each) for parameters in stepped for each in parameters}
        for place in owned.values():
            self._take(PARAMETERS, place.tensor, place.name)
            self._take_shards(place.tensor, place.name)
            if self._names:
                self._owner_of[id(place.tensor)] = place.name()
        idle = [
            place.tensor
            for place in owned.values()
            if id(place.tensor) not in in_optimizers and place.tensor.requires_grad
        ]
        shapes = {each.size() for each in idle}
        unowned = [each for parameters in stepped for each in parameters if id(each) not in owned]
        for number, parameter in enumerate(unowned):
            is_master = bool(idle) and _may_be_master(parameter, shapes)
            name = f"master weights {number}" if is_master else f"parameter {number}"
            self._take(OPTIMIZER_STATE if is_master else PARAMETERS, parameter, partial(str, name))
            self._owner_of.setdefault(id(parameter), name)
        return [*(place.tensor for place in owned.values()), *unowned]

    def _count_gradients(self, parameters: list[Any]) -> None:
        for parameter in parameters:
            self._take_gradients(parameter, partial(self._gradient_name, id(parameter)))

    def _take_gradients(self, parameter: Any, name: Name) -> None:
        # Asking a tensor inside the graph for its gradient would print a warning.
        gradient = parameter.grad if parameter.is_leaf else None
        if gradient is not None:
            self._take(GRADIENTS, gradient, name)
        for attribute in _GRADIENT_ATTRIBUTES:
            self._take_attribute(GRADIENTS, parameter, attribute, name)

    def _take_shards(self, parameter: Any, name: Name) -> None:
        """What sharding frameworks keep beside a parameter whose own memory they may have freed."""
        self._take_attribute(PARAMETERS, parameter, "ds_tensor", name)
        if getattr(parameter, "_is_flat_param", False):
            for attribute in _FLAT_PARAMETER_SHARDS:
                self._take_attribute(PARAMETERS, parameter, attribute, name)

    def _count_state(self, optimizer: Any) -> None:
        for key, state in list(optimizer.state.items()):
            owner = self._owner_of.get(id(key), "")
            for kind, value in _named(state):
                self._take_value(OPTIMIZER_STATE, value, partial(_state_name, kind, owner))

    def _gradient_name(self, parameter_id: int) -> str:
        return f"gradient of {self._owner_of[parameter_id]}"

    def _take_attribute(self, code: int, parameter: Any, attribute: str, name: Name) -> None:
        value = getattr(parameter, attribute, None)
        if value is not None:
            self._take_value(code, value, name)

    def _take(self, code: int, tensor: Any, name: Name) -> None:
        self._code, self._name = code, name
        self._leaves.of_tensor(tensor)

    def _take_value(self, code: int, value: Any, name: Name) -> None:
        self._code, self._name = code, name
        self._leaves.of_value(value)

    def _count(self, tensor: Any) -> None:
        self.tensors += 1
        found = self._storage(tensor)
        if found is None:
            return
        address, size_bytes = found
        if not size_bytes or address in self._addresses:
            return
        self._addresses.add(address)
        self.bytes_of[self._code] += -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES
        if self._names:
            self.owned.append(Owned(address, size_bytes, self._code, self._name()))


_FLAT_PARAMETER_SHARDS: Final = (
    "_local_shard",
    "_mp_shard",
    "_full_param_padded",
    "_full_prec_full_param_padded",
)
_GRADIENT_ATTRIBUTES: Final = ("main_grad", "_saved_grad_shard")
"""Where Megatron and FSDP keep gradients, apart from ``grad``."""


def parameters_of(optimizer: Any) -> Iterator[Any]:
    """The parameters that an optimizer steps."""
    for group in list(optimizer.param_groups):
        yield from list(group["params"])


def _may_be_master(parameter: Any, shapes: set[Any]) -> bool:
    """Whether an optimizer's own parameter may be a copy of one that a module has."""
    if hasattr(parameter, "_local_tensor"):
        return False  # a sharded parameter, of which the module has the whole one at this moment
    return parameter.size() in shapes or (
        parameter.dim() == 1 and parameter.numel() >= MIN_FLAT_MASTER
    )


def _state_name(kind: str, owner: str) -> str:
    return f"{kind} of {owner}" if owner else kind


def _named(state: Any) -> list[tuple[str, Any]]:
    if hasattr(state, "items"):
        return [(str(kind), value) for kind, value in list(state.items())]
    return [("state", state)]
