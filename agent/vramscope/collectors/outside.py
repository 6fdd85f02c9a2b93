"""What this process holds on the device outside of PyTorch's allocator, as measured differences.

Nobody can ask CUDA what its memory is for. So the difference of the driver's number and PyTorch's
is followed: the first is the CUDA context, and each lasting step up after it is named by what came
into the process at that time. What nothing explains stays "not known".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from vramscope.collectors.outside_signs import NCCL, Signs, count_groups, names_of_new, read_signs
from vramscope.collectors.process_listing import ProcessListing
from vramscope.sampling.clock import Clock
from vramscope.size_text import size_text
from vramscope_protocol.account import MemoryPart
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Event

RESOLUTION_BYTES: Final = 2 << 20
"""The driver counts in pages of this size: a smaller difference says nothing."""

LASTING_READINGS: Final = 3
"""A step counts when so many readings in a row have it."""

EVENT_INTERVAL_NS: Final = 5_000_000_000
_SIGNS_INTERVAL_NS: Final = 30_000_000_000
_NEAR_ZERO_BYTES: Final = 64 << 20

CONTEXT: Final = "CUDA context"
CONTEXT_AND_MORE: Final = "CUDA context and libraries"
NOT_KNOWN: Final = "not known"
_AT_FIRST: Final = "measured before PyTorch held much"
_NOT_DIVIDED: Final = "all that was there at the first look, not divided"
_NO_SIGN: Final = "nothing was seen to come with it; kernels that load at first use leave no sign"
_TOO_NEW: Final = "not lasting yet"


class Outside:
    """Follows the difference. Sampler thread, about once a second.

    Args:
        listing: the driver's last list of processes.
        clock: for the rates of events and of looks at the mapped files.
        emit: takes an event when the division has changed.
        current_step: steps finished so far.
        read_signs: what can be seen of the process now.
        count_groups: process groups that use NCCL now.
    """

    def __init__(
        self,
        listing: Callable[[], ProcessListing],
        *,
        clock: Clock,
        emit: Callable[[Event], object],
        current_step: Callable[[], int],
        read_signs: Callable[[], Signs] = read_signs,
        count_groups: Callable[[], int] = count_groups,
    ) -> None:
        self._listing = listing
        self._clock = clock
        self._emit = emit
        self._current_step = current_step
        self._read_signs = read_signs
        self._count_groups = count_groups
        self._parts: list[MemoryPart] = []
        self._recent: deque[int] = deque(maxlen=LASTING_READINGS)
        self._signs = Signs()
        self._signs_due_ns = 0
        self._groups_named = 0
        self._has_news = False
        self._event_due_ns = 0

    def read(self) -> list[MemoryPart]:
        """The parts, which sum up to the difference; none where it is not known."""
        outside_bytes = self._listing().outside_bytes
        if outside_bytes == UNKNOWN or outside_bytes <= 0:
            return []
        self._follow(outside_bytes)
        parts = _fitted(self._parts, outside_bytes)
        self._tell(outside_bytes)
        return parts

    def _follow(self, outside_bytes: int) -> None:
        if not self._parts:
            self._begin(outside_bytes)
            return
        self._recent.append(outside_bytes)
        level_bytes = sum(part.bytes for part in self._parts)
        low, high = min(self._recent), max(self._recent)
        is_lasting = len(self._recent) == LASTING_READINGS and high - low <= RESOLUTION_BYTES
        if is_lasting and low - level_bytes >= RESOLUTION_BYTES:
            self._rise(low - level_bytes)
        elif is_lasting and level_bytes - high >= RESOLUTION_BYTES:
            self._fall(level_bytes - high)
        elif abs(outside_bytes - level_bytes) < RESOLUTION_BYTES:
            self._look_around()

    def _begin(self, outside_bytes: int) -> None:
        is_early = self._listing().reserved_bytes <= _NEAR_ZERO_BYTES
        name, how = (CONTEXT, _AT_FIRST) if is_early else (CONTEXT_AND_MORE, _NOT_DIVIDED)
        self._parts = [MemoryPart(name, outside_bytes, how)]
        self._signs = self._read_signs()
        self._groups_named = 0 if is_early else self._signs.groups
        self._has_news = True

    def _look_around(self) -> None:
        """While nothing moves, note what is there: it is not what the next step is made of."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._signs_due_ns:
            self._signs_due_ns = now_ns + _SIGNS_INTERVAL_NS
            self._signs = self._read_signs()

    def _rise(self, rise_bytes: int) -> None:
        signs = self._read_signs()
        # A group takes its memory when it is first used, which may be long after it was made.
        names = names_of_new(self._signs._replace(groups=self._groups_named), signs)
        self._signs = signs
        self._groups_named = max(self._groups_named, signs.groups)
        step = self._current_step()
        first = self._parts[0]
        if not names and first.name == CONTEXT and len(self._parts) == 1 and step == 0:
            first.bytes += rise_bytes  # CUDA is still coming up
        else:
            how = f"came when {' and '.join(names)} came, by step {step}" if names else _NO_SIGN
            if NCCL in names:
                how = f"{how}; {signs.groups} process groups"
            self._add(", ".join(names) or NOT_KNOWN, rise_bytes, how)
        self._settle()

    def _add(self, name: str, size_bytes: int, how: str) -> None:
        for part in self._parts:
            if part.name == name:
                part.bytes += size_bytes
                part.how = how
                return
        self._parts.append(MemoryPart(name, size_bytes, how))

    def _fall(self, fall_bytes: int) -> None:
        groups = self._count_groups()
        order = list(reversed(self._parts))
        if groups < self._groups_named:
            order.sort(key=lambda part: NCCL not in part.name)
            self._groups_named = groups
        for part in order:
            taken = min(part.bytes, fall_bytes)
            part.bytes -= taken
            fall_bytes -= taken
        self._parts = [part for part in self._parts if part.bytes]
        self._settle()

    def _settle(self) -> None:
        self._recent.clear()
        self._has_news = True

    def _tell(self, outside_bytes: int) -> None:
        now_ns = self._clock.monotonic_ns()
        if not self._has_news or now_ns < self._event_due_ns:
            return
        self._has_news = False
        self._event_due_ns = now_ns + EVENT_INTERVAL_NS
        named = ", ".join(f"{part.name} {size_text(part.bytes)}" for part in self._parts)
        text = f"holds {size_text(outside_bytes)} outside of PyTorch: {named}"
        parts = msgspec.to_builtins(_fitted(self._parts, outside_bytes))
        data: dict[str, object] = {"bytes": outside_bytes, "parts": parts}
        self._emit(Event(0, self._clock.time_ns(), "outside", self._current_step(), text, data))


def _fitted(parts: list[MemoryPart], outside_bytes: int) -> list[MemoryPart]:
    """The parts as of this reading: never more than there is, and the rest as such."""
    left = outside_bytes
    fitted: list[MemoryPart] = []
    for part in sorted(parts, key=lambda part: part.name == NOT_KNOWN):
        taken = min(part.bytes, left)
        left -= taken
        if taken:
            fitted.append(MemoryPart(part.name, taken, part.how))
    last = fitted[-1] if fitted else None
    if left and last is not None and last.name == NOT_KNOWN:
        last.bytes += left
    elif left:
        fitted.append(MemoryPart(NOT_KNOWN, left, _TOO_NEW))
    return fitted
