"""The tensors of all modules, each with the path that a person knows it by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

_WRAPPERS: Final = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
"""Names under which wrappers hold the module that they wrap."""

_DATA_PARALLEL: Final = frozenset({"DistributedDataParallel", "DataParallel"})


class Place:
    """A tensor that a module holds.

    Args:
        tensor: the tensor.
        path: of the module.
        key: the tensor's name in the module.
        is_parameter: a parameter, else a buffer.
    """

    __slots__ = ("is_parameter", "key", "path", "tensor")

    def __init__(self, tensor: Any, path: str, key: str, is_parameter: bool) -> None:
        self.tensor = tensor
        self.path = path
        self.key = key
        self.is_parameter = is_parameter

    def name(self) -> str:
        """Path of the tensor, as ``named_parameters`` gives it."""
        return self.path + self.key


def named_places(modules: Iterable[Any]) -> list[Place]:
    """Parameters and buffers of modules and of all that is inside them, each tensor once.

    Paths begin at the modules that are inside no other. Where there are several of these that
    hold tensors, paths begin with the name of the class.
    """
    alive = list(modules)
    seen: set[int] = set()
    found: list[tuple[str, list[Place]]] = []
    # Modules that hold each other in a circle are inside of something, all of them: last.
    for root in (*roots_of(alive), *alive):
        places: list[Place] = []
        _walk(root, seen, places.append)
        if places:
            found.append((type(root).__name__, places))
    if len(found) > 1:
        numbers = Counter[str]()
        for kind, places in found:
            numbers[kind] += 1
            label = kind if numbers[kind] == 1 else f"{kind} ({numbers[kind]})"
            for place in places:
                place.path = f"{label}.{place.path}"
    return list(_once(place for _, places in found for place in places))


def roots_of(modules: list[Any]) -> list[Any]:
    """Modules that are inside no other of these, nor inside what is inside of these."""
    inside: set[int] = set()
    seen: set[int] = set()
    pending = list(modules)
    while pending:
        module = pending.pop()
        if id(module) not in seen:
            seen.add(id(module))
            for _, child in _children(module):
                inside.add(id(child))
                pending.append(child)
    return [module for module in modules if id(module) not in inside]


def _walk(root: Any, seen: set[int], add: Callable[[Place], object]) -> None:
    pending: list[tuple[str, Any]] = [("", root)]
    while pending:
        path, module = pending.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        attributes = module.__dict__
        for key, tensor in list(attributes.get("_parameters", _NONE).items()):
            if tensor is not None:
                add(Place(tensor, path, key, True))
        for key, tensor in list(attributes.get("_buffers", _NONE).items()):
            if tensor is not None:
                add(Place(tensor, path, key, False))
        hides_child = type(module).__name__ in _DATA_PARALLEL
        below = [
            (path if key in _WRAPPERS or hides_child else f"{path}{key}.", child)
            for key, child in _children(module)
        ]
        pending.extend(reversed(below))


def _children(module: Any) -> list[tuple[str, Any]]:
    children = module.__dict__.get("_modules", _NONE)
    return [(key, child) for key, child in list(children.items()) if child is not None]


def _once(places: Iterable[Place]) -> Iterable[Place]:
    seen: set[int] = set()
    for place in places:
        if id(place.tensor) not in seen:
            seen.add(id(place.tensor))
            yield place


_NONE: Final[dict[str, Any]] = {}
