"""The modules of a model by their path, with the bytes of their own parameters and buffers."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

MAX_MODULES: Final = 20_000
"""Modules of one model that are told apart; those beyond count to the nearest one above."""


class ModuleEntry(Struct):
    """One module. Bytes are those of its own tensors, without its children's.

    A storage that several modules share (tied weights, one flat buffer) counts once, where it is
    met first.
    """

    path: str
    type_name: str
    parent: int | None
    """Position of the module above in the same list."""
    parameters_bytes: int
    buffers_bytes: int


class ModuleTree:
    """The modules of a job's models, parents before children.

    Holds no module: a model that the job drops in the meantime is freed as ever.
    """

    def __init__(self) -> None:
        self.entries: list[ModuleEntry] = []
        self._known: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._storages: set[int] = set()
        self._roots: list[str] = []

    def position_of(self, module: Any) -> int | None:
        """Where a module is in :attr:`entries`; ``None`` if it has not been added."""
        found = self._known.get(id(module))
        return found[0] if found is not None and found[1]() is module else None

    def add(self, root: Any) -> None:
        """Add a model with all modules within, beside those that are known."""
        prefix = self._prefix(type(root).__name__)
        positions: dict[str, int] = {}
        # Of two places that hold the same module this tells the first only.
        for name, module in modules_of(root):
            if len(self.entries) >= MAX_MODULES:
                return
            if self.position_of(module) is not None:
                continue
            above = positions.get(name.rpartition(".")[0], positions.get("")) if name else None
            positions[name] = len(self.entries)
            self._known[id(module)] = (len(self.entries), weakref.ref(module))
            self.entries.append(
                ModuleEntry(
                    ".".join(part for part in (prefix, name) if part) or type(module).__name__,
                    type(module).__name__,
                    above,
                    _bytes_of(module, "_parameters", self._storages),
                    _bytes_of(module, "_buffers", self._storages),
                )
            )

    def lineage(self, position: int) -> tuple[int, ...]:
        """A module and all above it, itself first."""
        found = [position]
        parent = self.entries[position].parent
        while parent is not None:
            found.append(parent)
            parent = self.entries[parent].parent
        return tuple(found)

    def _prefix(self, type_name: str) -> str:
        """What tells a further model's paths from those of the first, which have none."""
        count = self._roots.count(type_name)
        self._roots.append(type_name)
        if len(self._roots) == 1:
            return ""
        return f"{type_name}#{count + 1}" if count else type_name


def modules_of(root: Any) -> Iterator[tuple[str, Any]]:
    """A model and the modules within, as ``named_modules`` gives them, each once.

    None of the model's methods is called: a job may have its own, which gather shards, say.
    """
    seen: set[int] = set()
    pending: list[tuple[str, Any]] = [("", root)]
    while pending:
        name, module = pending.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield name, module
        children = list(module.__dict__.get("_modules", _NONE).items())
        pending.extend(
            (f"{name}.{key}" if name else key, child)
            for key, child in reversed(children)
            if child is not None
        )


def tensors_of(module: Any, kind: str) -> list[Any]:
    """A module's own tensors: ``_parameters`` or ``_buffers``."""
    tensors = list(module.__dict__.get(kind, _NONE).values())
    return [tensor for tensor in tensors if tensor is not None]


def _bytes_of(module: Any, kind: str, seen: set[int]) -> int:
    """Bytes of the storages that were not seen before."""
    c_module = sys.modules["torch"]._C
    is_lazy_clone = getattr(c_module, "_is_cow_tensor", None)
    total = 0
    # Subclasses and modes of the job do not get to see that their tensors are looked at.
    with c_module.DisableTorchFunction():
        for tensor in tensors_of(module, kind):
            # A distributed tensor has its part of the data in a tensor within.
            local = getattr(tensor, "_local_tensor", tensor)
            try:
                # Of a lazily cloned tensor even the question for the address would make the copy.
                if is_lazy_clone is not None and is_lazy_clone(local):
                    continue
                storage = local.untyped_storage()
                address, size_bytes = storage.data_ptr(), storage.nbytes()
            except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
                continue  # a subclass without a storage, or one that is still to be initialised
            if size_bytes and address and address not in seen:
                seen.add(address)
                total += size_bytes
    return total


_NONE: Final[dict[str, Any]] = {}
