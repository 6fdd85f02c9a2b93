"""One look through all objects for the modules that were built before the agent came."""

from __future__ import annotations

import gc
import sys
import time
from typing import Any, Final, NamedTuple

from vramscope.tensors.modules import Modules

LONGEST_S: Final = 0.5
_CHUNK: Final = 50_000


class Scan(NamedTuple):
    """What a look through the objects found, and what it cost."""

    modules: int
    objects: int
    took_s: float
    is_complete: bool


def scan_for_modules(modules: Modules, longest_s: float = LONGEST_S) -> Scan:
    """Note every module that the garbage collector knows of.

    The objects are held for no longer than this call. Their classes are asked and never they
    themselves: a proxy would answer for something else, or raise.

    Args:
        modules: takes what is found.
        longest_s: give up after this time.
    """
    start_s = time.perf_counter()
    module_class: Any = sys.modules["torch"].nn.Module
    objects = gc.get_objects()
    count, looked_at, found = len(objects), 0, 0
    # By id: a class may refuse to be hashed. All of them live, since their objects do.
    classes: dict[int, bool] = {}
    while looked_at < count and time.perf_counter() - start_s < longest_s:
        chunk = objects[looked_at : looked_at + _CHUNK]
        kinds: list[Any] = list(map(type, chunk))
        for kind in {id(kind): kind for kind in kinds}.values():
            if id(kind) not in classes:
                classes[id(kind)] = issubclass(kind, module_class)
        for each, kind in zip(chunk, kinds, strict=True):
            if classes[id(kind)]:
                modules.add(each)
                found += 1
        looked_at += len(chunk)
    return Scan(found, count, time.perf_counter() - start_s, looked_at >= count)
