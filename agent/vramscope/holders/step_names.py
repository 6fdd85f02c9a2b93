"""How one object is reached from another, in words: ``Trainer.results``, ``['acc']``, ``[3]``."""

from __future__ import annotations

from collections import deque
from itertools import islice
from types import CellType, FrameType, FunctionType, GeneratorType, MethodType, TracebackType
from typing import Any, Final

from vramscope.holders.classes import PLAIN_DICT, attributes_of, class_name, class_of
from vramscope.holders.frame_locals import locals_of

MAX_WORDS: Final = 120
_MAX_LOOKED_AT: Final = 100_000
HOOK_NAMES: Final = frozenset(
    {
        "_forward_hooks",
        "_forward_pre_hooks",
        "_backward_hooks",
        "_backward_pre_hooks",
        "_state_dict_hooks",
        "_post_accumulate_grad_hooks",
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
    }
)
"""Attributes in which PyTorch keeps the hooks of modules, tensors and optimizers."""

_LRU_CACHE: Final = "_lru_cache_wrapper"
_LOADER: Final = "_BaseDataLoaderIter"


def has_attributes(value: Any) -> bool:
    """Whether an object keeps what it holds under names of its own: an instance of a class."""
    kind = class_of(value)
    if issubclass(kind, (dict, list, tuple, set, frozenset, deque)) and not attributes_of(value):
        return False
    return not issubclass(
        kind,
        (type, FunctionType, MethodType, CellType, FrameType, TracebackType, GeneratorType),
    ) and not is_lru_cache(value)


def is_lru_cache(value: Any) -> bool:
    """Whether it is a function under ``functools.lru_cache``."""
    return class_name(value) == _LRU_CACHE


def is_loader(value: Any) -> bool:
    """Whether it is an iterator of a ``DataLoader``."""
    return any(kind.__name__ == _LOADER for kind in type(value).__mro__)


def container_words(value: Any, bound: str = "") -> str:
    """``list of 40``; empty for what is no container.

    Args:
        value: the container.
        bound: how many it takes, in words, where it does not know that itself.
    """
    kind = class_of(value)
    if issubclass(kind, deque) and value.maxlen is not None:
        bound = f"maxlen={value.maxlen}"
    if issubclass(kind, (dict, list, tuple, set, frozenset, deque)):
        return f"{class_name(value)}{bound and f'({bound})'} of {count_of(value)}"
    if is_lru_cache(value):
        info = value.cache_info()
        return f"lru_cache(maxsize={info.maxsize}) of {info.currsize}"
    return ""


def step_words(parent: Any, child: Any) -> str:
    """How ``child`` is had from ``parent``; empty where there is nothing to say."""
    kind = class_of(parent)
    words = ""
    if issubclass(kind, dict):
        words = _key_words(parent, child)
    elif issubclass(kind, (list, tuple)):
        words = _index_words(kind, parent, child)
    elif issubclass(kind, (FrameType, GeneratorType)):
        frame = parent if issubclass(kind, FrameType) else parent.gi_frame
        words = "" if frame is None else _variable_words(frame, child)
    elif issubclass(kind, (MethodType, CellType, FunctionType, TracebackType)) or is_lru_cache(
        parent
    ):
        words = ""
    elif has_attributes(parent):
        words = attribute_name(parent, child)
        words = f".{words}" if words else ""
    return words[:MAX_WORDS]


def attribute_name(parent: Any, child: Any) -> str:
    """Name of the attribute under which an instance has a value; empty if it is not found."""
    attributes = attributes_of(parent)
    if attributes is child:
        return ""
    for name, value in islice(list(attributes.items()), _MAX_LOOKED_AT):
        if value is child:
            return str(name)
    for base in type(parent).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if type(slots) is str else tuple(slots):
            member: Any = base.__dict__.get(name)
            if type(member).__name__ != "member_descriptor":
                continue
            try:
                if member.__get__(parent) is child:
                    return str(name)
            except AttributeError:
                continue  # not set
    return ""


def closure_name(function: Any, cell: Any) -> str:
    """Name of the variable that a cell of a function stands for."""
    cells: tuple[Any, ...] = function.__closure__ or ()
    for name, each in zip(function.__code__.co_freevars, cells, strict=False):
        if each is cell:
            return str(name)
    return ""


def _key_words(parent: Any, child: Any) -> str:
    for key, value in islice(list(PLAIN_DICT.items(parent)), _MAX_LOOKED_AT):
        if value is child:
            return f"[{_key(key)}]"
        if key is child:
            return f"key {class_name(key)}"
    return ""


def _key(key: Any) -> str:
    kind = class_of(key)
    if kind in (str, int, float, bool, bytes):
        return repr(key)[:60]
    if kind is tuple:
        return "(" + ", ".join(map(_key, key[:4])) + ")"
    return f"<{class_name(key)}>"


def _index_words(kind: Any, parent: Any, child: Any) -> str:
    fields = kind.__dict__.get("_fields", ())
    names = fields if class_of(fields) is tuple else ()
    # A class derived from them may give other members, or make them only then.
    base: Any = list if issubclass(kind, list) else tuple
    for number, value in enumerate(islice(list(base.__iter__(parent)), _MAX_LOOKED_AT)):
        if value is child:
            if len(names) > number:
                return f".{names[number]}"
            return f"[{number}]"
    return ""


def _variable_words(frame: FrameType, child: Any) -> str:
    variables = locals_of(frame) or {}
    for name, value in variables.items():
        if value is child:
            return str(name)
    return ""


def count_of(value: Any) -> int:
    """How many a container has; 0 for what is none."""
    bases: tuple[Any, ...] = (dict, list, tuple, set, frozenset, deque)
    for base in bases:
        if issubclass(type(value), base):
            return int(base.__len__(value))
    return 0
