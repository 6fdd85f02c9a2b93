"""Names in PyTorch's modules that stand for functions of ours for a while."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple


class _Replaced(NamedTuple):
    module: ModuleType
    name: str
    original: Any
    answer: Any


class TorchNames:
    """Replaces functions, and puts the originals back.

    Args:
        is_ours: whether our function answers a call; otherwise the original does, so that a name
            that the job has imported stays right after the end.
    """

    def __init__(self, is_ours: Callable[[], bool]) -> None:
        self._is_ours = is_ours
        self._replaced: list[_Replaced] = []

    def replace(self, module: ModuleType, name: str, function: Callable[..., Any]) -> None:
        """Let ``module.name`` be ``function``, if this torch has such a name."""
        original = vars(module).get(name)
        if original is not None:
            self._put(module, name, original, function)

    def add(self, module: ModuleType, name: str, function: Callable[..., Any]) -> None:
        """The same for a name that builds of torch without CUDA lack."""
        self._put(module, name, vars(module).get(name), function)

    def restore(self) -> None:
        """Put every original back, unless somebody else has replaced our function meanwhile."""
        for replaced in reversed(self._replaced):
            if vars(replaced.module).get(replaced.name) is not replaced.answer:
                continue
            if replaced.original is None:
                delattr(replaced.module, replaced.name)
            else:
                setattr(replaced.module, replaced.name, replaced.original)
        self._replaced.clear()

    def _put(
        self, module: ModuleType, name: str, original: Any, function: Callable[..., Any]
    ) -> None:
        is_ours = self._is_ours

        def answer(*args: Any, **options: Any) -> Any:
            if is_ours():
                return function(*args, **options)
            return None if original is None else original(*args, **options)

        if original is not None:
            # Signature, documentation and place: pickles refer to functions by these.
            functools.update_wrapper(answer, original)
        else:
            answer.__name__ = answer.__qualname__ = name
        setattr(module, name, answer)
        self._replaced.append(_Replaced(module, name, original, answer))
