"""Whether tensors are written to in the steps after they were found: an average is, a copy is not.

PyTorch counts how often each tensor was changed in place. What is written through ``.data``, and
tensors of the inference mode, are not counted.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

WATCHED_STEPS: Final = 16
"""What is written less often is not seen to be."""


class Written(Struct):
    """A tensor and how often it had been written, without keeping it alive."""

    tensor: weakref.ref[Any]
    version: int


def written_until_now(tensors: Iterable[Any]) -> list[Written]:
    """How often each was written until now; those of which it is not known are left out.

    Args:
        tensors: plain tensors.
    """
    found: list[Written] = []
    for tensor in tensors:
        version = _version(tensor)
        if version is not None:
            found.append(Written(weakref.ref(tensor), version))
    return found


def are_written(before: Iterable[Written]) -> bool | None:
    """Whether one of them has been written since; ``None`` if there is none any more.

    Args:
        before: as they were found.
    """
    alive = [(each, tensor) for each in before if (tensor := each.tensor()) is not None]
    if not alive:
        return None
    return any(_version(tensor) != each.version for each, tensor in alive)


def _version(tensor: Any) -> int | None:
    try:
        return int(tensor._version)
    except RuntimeError:
        return None  # of the inference mode
