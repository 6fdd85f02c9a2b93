"""Where the words for a way begin: at the nearest name above a container that a person knows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any, Final

from msgspec import Struct

from vramscope.holders.classes import PLAIN_DICT, attributes_of, class_name, class_of
from vramscope.holders.holder import Kind, SourceLine, StoreTarget
from vramscope.holders.reach import Root
from vramscope.holders.step_names import (
    HOOK_NAMES,
    attribute_name,
    closure_name,
    has_attributes,
    is_loader,
    is_lru_cache,
)

_INNER: Final = frozenset({"_parameters", "_buffers", "_modules", "param_groups", "state"})
"""Where modules and optimizers keep what they have: they themselves are what has a name."""


class Beginning(Struct, frozen=True):
    """A name.

    Args:
        position: of the object in the way that has it.
        kind: what kind of name.
        words: the name.
        line: the live line that it is a local of, or where a hook or a cache was defined.
        target: the name as something is stored into it.
    """

    position: int
    kind: Kind
    words: str
    line: SourceLine | None = None
    target: StoreTarget | None = None


def beginning(way: Sequence[Any], container: int, root: Root | None) -> Beginning:
    """The nearest name at or above the container.

    Args:
        way: objects from the first that a name leads to down to a tensor.
        container: position of the one that holds many.
        root: the name of the first.
    """
    special = _special(way, container)
    if special is not None:
        return special
    inner: Beginning | None = None
    for position in range(min(container, len(way) - 2), -1, -1):
        found = named_step(way, position)
        if found is not None and found.position <= container + 1:
            if found.words.rpartition(".")[2] not in _INNER:
                return found
            inner = inner or found
    if root is None and inner is not None:
        return inner
    if root is None:
        return Beginning(0, "unknown", class_name(way[0]))
    return Beginning(0, root.kind, root.name, root.line, root_target(root))


def named_step(way: Sequence[Any], position: int) -> Beginning | None:
    """The name under which one object of a way has what comes after it, if it has names."""
    holder = way[position]
    if issubclass(class_of(holder), type):
        return _class_attribute(way, position)
    if class_of(holder) is FunctionType:
        return _closure(way, position)
    return instance_attribute(way, position) if has_attributes(holder) else None


def instance_attribute(way: Sequence[Any], position: int) -> Beginning | None:
    """The attribute of an instance under which it has what comes next in the way."""
    holder = way[position]
    # What comes next may be the dictionary of its attributes.
    for after in (position + 1, position + 2):
        name = attribute_name(holder, way[after]) if after < len(way) else ""
        if name:
            words = f"{class_name(holder)}.{name}"
            return Beginning(after, "attribute", words, None, _attribute_target(type(holder), name))
        if after < len(way) and class_of(way[after]) is not dict:
            break
    return None


def closure_variable(way: Sequence[Any], position: int) -> str:
    """The variable of a function under which it has what comes after its cell in the way."""
    below = way[position + 1 : position + 3]
    if len(below) == 2 and class_of(below[1]) is CellType:
        return closure_name(way[position], below[1])
    return ""


def _class_attribute(way: Sequence[Any], position: int) -> Beginning | None:
    """A class, its dictionary, and a value in that."""
    if position + 2 >= len(way) or class_of(way[position + 1]) is not dict:
        return None
    owner, value = way[position], way[position + 2]
    for name, each in list(PLAIN_DICT.items(way[position + 1])):
        if each is value:
            words = f"{owner.__name__}.{name}"
            target = _attribute_target(owner, str(name))
            return Beginning(position + 2, "attribute", words, None, target)
    return None


def _closure(way: Sequence[Any], position: int) -> Beginning | None:
    function = way[position]
    name = closure_variable(way, position)
    if not name:
        return None
    code = function.__code__
    line = SourceLine(code.co_filename, code.co_firstlineno, code.co_name)
    target = StoreTarget(code.co_filename, name, first_line=code.co_firstlineno)
    return Beginning(position + 3, "closure", f"{name} in {function.__qualname__}", line, target)


def _special(way: Sequence[Any], container: int) -> Beginning | None:
    """A cache, a hook or a loader at or above the container."""
    for position in range(container, -1, -1):
        holder = way[position]
        if is_lru_cache(holder):
            function: Any = attributes_of(holder).get("__wrapped__")
            name = function.__qualname__ if _is_plain(function) else "a function"
            return Beginning(position, "lru_cache", name, _defined(function))
        if is_loader(holder):
            return Beginning(position, "data_loader", class_name(holder))
        if position and _is_hooks(way[: position + 1]):
            functions = [each for each in way[position:] if class_of(each) is FunctionType]
            owner = way[position - 1] if has_attributes(way[position - 1]) else way[position - 2]
            line = _defined(functions[0]) if functions else None
            return Beginning(position, "hook", f"hook on {class_name(owner)}", line)
    return None


def _is_hooks(way: Sequence[Any]) -> bool:
    """Whether the last of these is where PyTorch keeps hooks."""
    if not issubclass(class_of(way[-1]), dict):
        return False
    return any(
        has_attributes(owner) and attribute_name(owner, way[-1]) in HOOK_NAMES
        for owner in way[-3:-1]
    )


def _is_plain(function: Any) -> bool:
    """Whether it has a name that is no code of the job: what is cached is anything callable."""
    return class_of(function) in (FunctionType, BuiltinFunctionType, type)


def _defined(function: Any) -> SourceLine | None:
    if class_of(function) is not FunctionType:
        return None
    code = function.__code__
    return SourceLine(code.co_filename, code.co_firstlineno, code.co_name)


def _attribute_target(owner: Any, name: str) -> StoreTarget | None:
    # The context of a function of autograd has a class of its own.
    owner = owner.__dict__.get("_forward_cls", owner)
    module = sys.modules.get(str(type.__dict__["__module__"].__get__(owner)))
    file = attributes_of(module).get("__file__") if class_of(module) is ModuleType else None
    if class_of(file) is not str:
        return None
    return StoreTarget(str(file), name, is_attribute=True, class_name=owner.__name__)


def root_target(root: Root) -> StoreTarget | None:
    """A variable as something is stored into it."""
    line = root.line
    if line is None:
        return None
    first_line = line.line if root.kind == "local" else 0
    return StoreTarget(line.file, root.name.rpartition(".")[2], first_line=first_line)
