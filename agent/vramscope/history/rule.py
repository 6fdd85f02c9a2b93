"""The rule by which a recording begins without a person: ``above 90%``. Pure."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from vramscope_protocol.columns import UNKNOWN

DEFAULT_STEPS: Final = 20
INTERVAL_S: Final = 3600.0
"""It does so at most once in this time."""

_RULE: Final = re.compile(r"above (\d{1,2})\s?%(?: for (\d{1,5}) steps?)?")


class HistoryRule(Struct, frozen=True):
    """Record some steps when memory in use passes a share of what the process may have."""

    percent: int
    steps: int = DEFAULT_STEPS

    @property
    def text(self) -> str:
        """The rule as it is written."""
        return f"above {self.percent}% for {self.steps} steps"

    def passed(
        self, reserved_bytes: int, used_bytes: int, total_bytes: int, limit_bytes: int | None
    ) -> str | None:
        """What has passed the share, in words; ``None`` if nothing has, or nothing is known.

        Args:
            reserved_bytes: what PyTorch holds.
            used_bytes: what all processes hold of the device.
            total_bytes: size of the device.
            limit_bytes: the process's own cap.
        """
        own_bytes = limit_bytes if limit_bytes is not None else total_bytes
        if own_bytes not in (UNKNOWN, 0) and reserved_bytes * 100 > own_bytes * self.percent:
            return f"reserved memory is above {self.percent}% of the limit"
        if (
            used_bytes != UNKNOWN
            and total_bytes not in (UNKNOWN, 0)
            and used_bytes * 100 > total_bytes * self.percent
        ):
            return f"the device is more than {self.percent}% full"
        return None


def parse_rule(text: str) -> HistoryRule | None:
    """Read ``above 90%`` or ``above 90% for 20 steps``; ``None`` for ``off``.

    Raises:
        ValueError: it is none of these.
    """
    words = text.strip().lower()
    if words == "off":
        return None
    match = _RULE.fullmatch(words)
    if match is None or int(match[1]) == 0 or match[2] == "0":
        raise ValueError(f"expected off, or a rule such as 'above 90% for 20 steps', got {text!r}")
    return HistoryRule(int(match[1]), int(match[2] or DEFAULT_STEPS))
