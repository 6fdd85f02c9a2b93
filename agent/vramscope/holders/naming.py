"""The words for a way from a name that a person knows, over a container, to a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType, FunctionType, MethodType, TracebackType
from typing import Any, Final

from msgspec import structs

from vramscope.holders.beginning import (
    beginning,
    closure_variable,
    instance_attribute,
    named_step,
    root_target,
)
from vramscope.holders.bounds import bound_words
from vramscope.holders.classes import class_name, class_of
from vramscope.holders.holder import HolderFound, SourceLine, StoreTarget
from vramscope.holders.reach import Root
from vramscope.holders.step_names import (
    attribute_name,
    container_words,
    has_attributes,
    is_lru_cache,
    step_words,
)

_MAX_PIECES: Final = 8
_MOST_TO_ATTRIBUTE: Final = 2
"""Steps from a variable to an attribute of its object, the dictionary of attributes included."""


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
    begin = beginning(way, container, root)
    chain = [begin.words, *_steps(way, begin.position, container)]
    size = ""
    if len(way) - container > 1:
        size = container_words(way[container], bound_words(way, container))
    if container and _says_all(way[container - 1], way[container]):
        size = ""  # the dictionary of an object's attributes
    if size:
        chain.append(size)
    # Which place of many one of them has says nothing of the others.
    below = container + 1 if size and tensors > 1 else container
    if is_lru_cache(way[container]) and class_of(way[container + 1]) is tuple:
        below += 1  # the tuple of the arguments that it is kept under
    chain += _steps(way, max(begin.position, below), len(way) - 1)
    found = HolderFound(
        begin.kind, _shortened([each for each in chain if each]), begin.line, tensors
    )
    if begin.target is not None:
        found.targets = [structs.replace(begin.target, is_single=not size)]
        is_direct = begin.kind == "attribute" and begin.position <= _MOST_TO_ATTRIBUTE
        if root is not None and is_direct and not _has_model(way[container + 1 :]):
            found.caller = root_target(root)
    failed = _failed_frame(way)
    if failed is not None:
        found.kind, found.frame = "exception", failed
    return found


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


def circle_targets(circle: Sequence[Any]) -> list[StoreTarget]:
    """What may have been stored into to close a circle: attributes, and variables of closures.

    Args:
        circle: as in ``circle_words``.
    """
    around = [*circle, *circle[:3]]
    found: list[StoreTarget] = []
    for position in range(len(circle)):
        begin = named_step(around, position)
        if begin is not None and begin.target is not None:
            found.append(structs.replace(begin.target, is_single=begin.kind == "attribute"))
    return found


def _failed_frame(way: Sequence[Any]) -> SourceLine | None:
    """Where the frame stopped that an exception keeps, and by which a tensor is held."""
    frames = [each for each in way if class_of(each) is FrameType]
    if not frames or not any(
        issubclass(class_of(each), (TracebackType, BaseException)) for each in way
    ):
        return None
    code = frames[-1].f_code
    return SourceLine(code.co_filename, frames[-1].f_lineno or 0, code.co_name)


def _steps(way: Sequence[Any], start: int, end: int) -> list[str]:
    """The words from one position down to another."""
    pieces: list[str] = []
    for position in range(start, end):
        holder, held = way[position], way[position + 1]
        if issubclass(class_of(holder), BaseException):
            pieces.append(class_name(holder))
        elif has_attributes(holder):
            found = instance_attribute(way, position)
            pieces += [] if found is None else [found.words]
        elif issubclass(class_of(holder), FrameType):
            pieces += [f"frame {holder.f_code.co_name}", step_words(holder, held)]
        elif issubclass(class_of(holder), MethodType):
            # It may be anything that can be called.
            function = holder.__func__
            is_plain = class_of(function) is FunctionType
            pieces.append(f"method {function.__qualname__ if is_plain else class_name(function)}")
        elif issubclass(class_of(holder), FunctionType):
            name = closure_variable(way, position)
            pieces.append(f"function {holder.__qualname__}" + (f", its {name}" if name else ""))
        elif not (position and _says_all(way[position - 1], holder)):
            pieces.append(step_words(holder, held))
    return pieces


def _has_model(way: Sequence[Any]) -> bool:
    """Whether what is kept is a model or an optimizer, and the tensor only a part of that."""
    return any(
        base.__name__ in ("Module", "Optimizer") for each in way for base in type(each).__mro__
    )


def _says_all(owner: Any, value: Any) -> bool:
    """Whether what an object has inside is named already: its attributes, its cells."""
    if class_of(owner) is FunctionType:
        return class_of(value) is tuple
    return class_of(value) is dict and has_attributes(owner) and not attribute_name(owner, value)


def _shortened(chain: list[str]) -> list[str]:
    if len(chain) <= _MAX_PIECES:
        return chain
    return [*chain[: _MAX_PIECES - 3], "…", *chain[-2:]]
