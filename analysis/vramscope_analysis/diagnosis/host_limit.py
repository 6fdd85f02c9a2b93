"""How near a growing process is to the end of the host's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vramscope_analysis.diagnosis.words import duration_range, size_text
from vramscope_analysis.evidence.columns import Rows

NEAR_S: Final = 3600.0
NEAR_SHARE: Final = 0.1
WORTH_TELLING_S: Final = 24 * 3600.0


@dataclass(frozen=True)
class HostLimit:
    """The limit of the process's control group, where it has one.

    Args:
        limit_bytes: None is none, or not known.
        free_bytes: what is left of it; the file cache counts as used, which the kernel gives up
            before it kills, so there may be more.
        seconds_left: until it is used up at this speed.
    """

    limit_bytes: int | None
    free_bytes: int | None
    seconds_left: float | None

    @property
    def is_near(self) -> bool:
        """Whether it is a matter of an hour, or of the last tenth."""
        if self.limit_bytes is None or self.free_bytes is None or self.seconds_left is None:
            return False
        return self.seconds_left < NEAR_S or self.free_bytes < NEAR_SHARE * self.limit_bytes

    @property
    def words(self) -> str:
        """What is left and for how long, as a sentence; empty if it is far away or not known."""
        if self.free_bytes is None or self.seconds_left is None:
            return ""
        if self.seconds_left > WORTH_TELLING_S:
            return ""
        time = duration_range(0.8 * self.seconds_left, 1.25 * self.seconds_left)
        return f" {size_text(self.free_bytes)} of host memory are left: {time} at this speed."


def host_limit(samples: Rows, bytes_per_s: float) -> HostLimit:
    """The limit, and how long it lasts.

    Args:
        samples: of the process.
        bytes_per_s: how fast it grows.
    """
    limit, used = samples.last("host.limit_bytes"), samples.last("host.limit_used_bytes")
    if limit is None or used is None or limit <= 0 or bytes_per_s <= 0:
        return HostLimit(limit, None, None)
    free = max(limit - used, 0)
    return HostLimit(limit, free, round(free / bytes_per_s, 1))
