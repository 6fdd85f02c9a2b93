"""How often sampling may happen, given what it costs. Pure."""

from __future__ import annotations

from typing import Final

_WINDOW_NS: Final = 5_000_000_000
_MIN_RATE_HZ: Final = 1.0
_GROWTH: Final = 1.5
"""The rate recovers by at most this factor a window, and falls at once."""


class CostBudget:
    """Lowers the rate when the sampler thread uses more CPU time than allowed; lets it recover.

    Args:
        wanted_rate_hz: the rate when cost is no matter.
        fraction: CPU time allowed, as a fraction of one core. 0 or less: no limit.
    """

    def __init__(self, wanted_rate_hz: float, fraction: float) -> None:
        self.wanted_rate_hz = wanted_rate_hz
        self.fraction = fraction
        self.rate_hz = wanted_rate_hz
        self._window_start_ns: int | None = None
        self._window_cpu_ns = 0

    def set_wanted_rate_hz(self, rate_hz: float) -> None:
        """Change the rate aimed at."""
        self.wanted_rate_hz = rate_hz
        self.rate_hz = min(self.rate_hz, rate_hz) if self.fraction > 0 else rate_hz
        self._window_start_ns = None

    def account(self, cpu_ns: int, now_ns: int) -> bool:
        """Take the CPU time of one turn; whether the rate has changed."""
        start_ns = self._window_start_ns
        if start_ns is None:
            # The first turn loads libraries: not the cost of sampling.
            self._window_start_ns = now_ns
            self._window_cpu_ns = 0
            return False
        self._window_cpu_ns += cpu_ns
        if self.fraction <= 0 or now_ns - start_ns < _WINDOW_NS:
            return False
        used = max(1, self._window_cpu_ns) / (now_ns - start_ns)
        self._window_start_ns = now_ns
        self._window_cpu_ns = 0
        # What a turn costs hardly depends on the rate, so the cost scales with it.
        affordable_hz = self.rate_hz * self.fraction / used
        before_hz = self.rate_hz
        self.rate_hz = min(
            self.wanted_rate_hz, max(_MIN_RATE_HZ, min(affordable_hz, before_hz * _GROWTH))
        )
        return self.rate_hz != before_hz
