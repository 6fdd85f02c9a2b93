"""Times out of memory that only PyTorch's counters tell of: from before it could tell us."""

from __future__ import annotations

from typing import Any, Final

from vramscope.devices.caching_allocator import Stats

_OOMS: Final = "num_ooms"
_REJECTIONS: Final = "num_oom_rejections"
"""Requests that ``throw_on_cudamalloc_oom`` turns down at once; observers do not hear of them."""


class CounterWatch:
    """Compares the counters from sample to sample. Sampler thread."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def rise(self, stats: Stats | None, told: int) -> str | None:
        """What has happened since the last look, in words; ``None`` is nothing that was not told.

        Args:
            stats: the nested counters.
            told: how often PyTorch has told of it so far.
        """
        if stats is None:
            return None
        ooms = self._rise(stats, _OOMS) - self._rise_of("told", told)
        rejected = self._rise(stats, _REJECTIONS)
        if rejected > 0:
            return f"{rejected} requests were turned down by throw_on_cudamalloc_oom"
        return f"PyTorch counted {ooms} times out of memory" if ooms > 0 else None

    def _rise(self, stats: Stats, name: str) -> int:
        value: Any = stats.get(name)
        return self._rise_of(name, value if isinstance(value, int) else 0)

    def _rise_of(self, name: str, value: int) -> int:
        before = self._before.get(name)
        self._before[name] = value
        # The first look only learns what there is; a job may set its counters back.
        return 0 if before is None else max(0, value - before)
