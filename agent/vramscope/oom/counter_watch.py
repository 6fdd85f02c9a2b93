"""Times out of memory that only PyTorch's counters tell of: where it cannot tell us itself."""

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

    def rise(self, stats: Stats | None, *, is_told: bool) -> str | None:
        """What has happened since the last look, in words; ``None`` is nothing.

        Args:
            stats: the nested counters.
            is_told: whether PyTorch tells of it, all but what is turned down at once.
        """
        if stats is None:
            return None
        ooms, rejected = self._rise(stats, _OOMS), self._rise(stats, _REJECTIONS)
        if rejected:
            return f"throw_on_cudamalloc_oom turned requests down: {rejected}"
        return f"times out of memory that PyTorch counted: {ooms}" if ooms and not is_told else None

    def _rise(self, stats: Stats, name: str) -> int:
        value: Any = stats.get(name)
        now = value if isinstance(value, int) else 0
        before = self._before.get(name)
        self._before[name] = now
        # The first look only learns what there is; a job may set its counters back.
        return 0 if before is None else max(0, now - before)
