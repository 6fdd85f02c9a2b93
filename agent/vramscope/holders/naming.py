"""The words for a way from a name that a person knows, over a container, to a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from types import CellType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any, Final

from vramscope.holders.classes import class_name, class_of
from vramscope.holders.holder import HolderFound, Kind, SourceLine
from vramscope.holders.reach import Root
from vramscope.holders.step_names import (
    HOOK_NAMES,
    attribute_name,
    closure_name,
    container_words,
    has_attributes,
    is_loader,
    is_lru_cache,
    step_words,
)

_MAX_PIECES: Final = 8


def name_way(
    way: Sequence[Any], container: int, root: Root | None, tensors: int = 1
) -> HolderFound:
    """Say what holds tensors, by the way to one of them.

    Args:
        way: objects from the first that a name leads to down to the tensor.
        container: position of the one that holds many.
        root: the name of the first.
        tensors: how many it holds of those that are asked for.
    """
    start, kind, words, frame = _beginning(way, container, root)
    chain = [words, *_steps(way, start, container)]
    size = container_words(way[container]) if len(way) - container > 1 else ""
    if size:
        chain.append(size)
    # Which place of many one of them has says nothing of the others.
    below = container + 1 if size and tensors > 1 else container
    if is_lru_cache(way[container]) and class_of(way[container + 1]) is tuple:
        below += 1  # the tuple of the arguments that it is kept under
    chain += _steps(way, max(start, below), len(way) - 1)
    failed = _failed_frame(way[container:])
    if failed is not None:
        kind, frame = "exception", failed
    return HolderFound(kind, _shortened([each for each in chain if each]), frame, tensors)


def circle_words(circle: Sequence[Any], way: Sequence[Any]) -> list[str]:
    """A circle of objects, and the way from it down to a tensor: ``M.which``, ``M.foo``.

    Args:
        circle: each held by the one before it, the first by the last.
        way: from one of them down.
    """
    if not circle:
        return []
    around = [*circle, circle[0]]
    pieces = [class_name(circle[0]), *_steps(around, 0, len(around) - 1)]
    below = _steps(way, 0, len(way) - 1) if len(way) > 1 else []
    return _shortened([each for each in (*pieces, *below) if each])


def _beginning(
    way: Sequence[Any], container: int, root: Root | None
) -> tuple[int, Kind, str, SourceLine | None]:
    """The nearest name above the container: where to begin, its kind, words and line."""
    special = _special(way, container)
    if special is not None:
        return special
    for position in range(min(container, len(way) - 2), -1, -1):
        holder, held = way[position], way[position + 1]
        found: tuple[int, Kind, str, SourceLine | None] | None = None
        if issubclass(type(holder), type):
            name = step_words(held, way[position + 2])[2:-2] if position + 2 < len(way) else ""
            found = (position + 2, "attribute", f"{holder.__name__}.{name}", None)
        elif issubclass(type(holder), FunctionType) and position + 2 < len(way):
            name = _closure_variable(holder, way[position + 1 : position + 3])
            if name:
                code = holder.__code__
                line = SourceLine(code.co_filename, code.co_firstlineno, code.co_name)
                found = (position + 3, "closure", f"{name} in {holder.__qualname__}", line)
        elif has_attributes(holder) and position <= container:
            found = _attribute(way, position)
        if found is not None and found[0] <= container + 1:
            return found
    if root is None:
        return 0, "unknown", class_name(way[0]), None
    return 0, root.kind, root.name, root.line


def _attribute(
    way: Sequence[Any], position: int
) -> tuple[int, Kind, str, SourceLine | None] | None:
    holder, held = way[position], way[position + 1]
    name = attribute_name(holder, held)
    if name:
        return position + 1, "attribute", f"{class_name(holder)}.{name}", None
    if type(held) is dict and position + 2 < len(way):  # the dictionary of its attributes
        name = attribute_name(holder, way[position + 2])
        if name:
            return position + 2, "attribute", f"{class_name(holder)}.{name}", None
    return None


def _special(way: Sequence[Any], container: int) -> tuple[int, Kind, str, SourceLine | None] | None:
    """A cache, a hook, an exception or a loader at or above the container."""
    for position in range(container, -1, -1):
        holder = way[position]
        if is_lru_cache(holder):
            function = getattr(holder, "__wrapped__", None)
            name = str(getattr(function, "__qualname__", "a function"))
            return position, "lru_cache", name, _defined(function)
        if is_loader(holder):
            return position, "data_loader", class_name(holder), None
        if position and _is_hooks(way[: position + 1]):
            functions = [each for each in way[position:] if type(each) is FunctionType]
            owner = class_name(way[position - 1] if has_attributes(way[position - 1]) else way[0])
            line = _defined(functions[0]) if functions else None
            return position, "hook", f"hook on {owner}", line
    return None


def _failed_frame(way: Sequence[Any]) -> SourceLine | None:
    """Where the frame stopped that an exception keeps, and by which a tensor is held."""
    frames = [each for each in way if class_of(each) is FrameType]
    if not frames or not any(
        issubclass(class_of(each), (TracebackType, BaseException)) for each in way
    ):
        return None
    code = frames[-1].f_code
    return SourceLine(code.co_filename, frames[-1].f_lineno or 0, code.co_name)


def _is_hooks(way: Sequence[Any]) -> bool:
    """Whether the last of these is where PyTorch keeps hooks."""
    if not issubclass(type(way[-1]), dict) or len(way) < 2:
        return False
    for owner in way[-3:-1]:
        if has_attributes(owner) and attribute_name(owner, way[-1]) in HOOK_NAMES:
            return True
    return False


def _closure_variable(function: Any, below: Sequence[Any]) -> str:
    """Of a function, the tuple of its cells, and a cell."""
    if len(below) == 2 and type(below[1]) is CellType:
        return closure_name(function, below[1])
    return ""


def _defined(function: Any) -> SourceLine | None:
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    return SourceLine(code.co_filename, code.co_firstlineno, code.co_name)


def _steps(way: Sequence[Any], start: int, end: int) -> list[str]:
    """The words from one position down to another."""
    pieces: list[str] = []
    for position in range(start, end):
        holder, held = way[position], way[position + 1]
        if issubclass(class_of(holder), BaseException):
            pieces.append(class_name(holder))
        elif has_attributes(holder):
            pieces += _attribute_pieces(way, position)
        elif issubclass(class_of(holder), FrameType):
            pieces += [f"frame {holder.f_code.co_name}", step_words(holder, held)]
        elif issubclass(class_of(holder), MethodType):
            pieces.append(f"method {holder.__func__.__qualname__}")
        elif issubclass(class_of(holder), FunctionType):
            name = _closure_variable(holder, way[position + 1 : position + 3])
            pieces.append(f"function {holder.__qualname__}" + (f", its {name}" if name else ""))
        elif not (position and _is_dict_of(way[position - 1], holder)):
            pieces.append(step_words(holder, held))
    return pieces


def _attribute_pieces(way: Sequence[Any], position: int) -> list[str]:
    found = _attribute(way, position)
    return [] if found is None else [found[2]]


def _is_dict_of(owner: Any, value: Any) -> bool:
    """Whether a dictionary is that of an object's attributes, which are named already."""
    return type(value) is dict and has_attributes(owner) and not attribute_name(owner, value)


def _shortened(chain: list[str]) -> list[str]:
    if len(chain) <= _MAX_PIECES:
        return chain
    return [*chain[: _MAX_PIECES - 3], "…", *chain[-2:]]
