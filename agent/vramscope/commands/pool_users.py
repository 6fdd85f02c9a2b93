"""Which private pools a CUDA graph or a memory pool of the job still keeps.

The segments of a pool look the same whether somebody keeps them or not, and PyTorch has no
question for it. Once nobody does, ``empty_cache`` treats them as those of every other pool.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from vramscope.commands.cache_plan import DEFAULT_POOL

Segment: TypeAlias = "Mapping[str, Any]"
PoolId: TypeAlias = "tuple[int, ...]"

_FROZEN_BY_PYTHON: Final = 1000
"""Python 3.12 begins with some hundreds of frozen objects; a job that freezes has far more."""


def without_lone_pools(segments: list[Segment]) -> list[Segment]:
    """The same segments, those of private pools that nobody keeps as of the default pool.

    Only where there are private pools the objects of the job are gone through. Where it has frozen
    them (``gc.freeze``), all pools count as kept. Training thread, outside of any capture.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or gc.get_freeze_count() > _FROZEN_BY_PYTHON:
        return segments  # graphs may be among the objects that the collector does not list
    if all(_pool(segment) == DEFAULT_POOL for segment in segments):
        return segments
    kept = {DEFAULT_POOL, *_kept_pools(torch.cuda, gc.get_objects())}
    return [
        segment if _pool(segment) in kept else {**segment, "segment_pool_id": DEFAULT_POOL}
        for segment in segments
    ]


def _kept_pools(cuda: Any, objects: Iterable[Any]) -> set[PoolId]:
    graph, pool = (getattr(cuda, name, None) for name in ("CUDAGraph", "MemPool"))
    kept: set[PoolId] = set()
    for each in objects:
        # By its type: to ask an object itself would run code of the job.
        kind = cast("type[object]", type(each))
        if graph is not None and issubclass(kind, graph):
            try:
                kept.add(tuple(each.pool()))
            except RuntimeError:
                continue  # nothing was captured, or it was reset: it keeps nothing
        elif pool is not None and issubclass(kind, pool):
            kept.add(tuple(each.id))
    return kept


def _pool(segment: Segment) -> PoolId:
    return tuple(segment.get("segment_pool_id", DEFAULT_POOL))
