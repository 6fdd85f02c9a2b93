"""Which stretches of time in a phase are worth an event, told as few times as needed. Pure."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from vramscope.peaks.peak_meter import PeakAccount
from vramscope_protocol.series import FIRST_USER_PHASE

Source = Literal["user", "callback", "loader", "save"]
"""Who says so: the user, a framework's callback, or what the job was seen to do."""

OPEN_AFTER_NS: Final = 1_000_000_000
"""A stretch that lasts longer is told before it ends."""

_MERGE_GAP_NS: Final = 250_000_000
_HOLD_NS: Final = 500_000_000
_SHORTEST_NS: Final[dict[Source, int]] = {"loader": 50_000_000, "save": 50_000_000}
_BURST: Final = 30.0
_A_SECOND: Final = 1.0


class Stretch(Struct, eq=False):
    """One stretch of time in one phase. ``end_ns`` is set, from any thread, when it is over."""

    id: int
    name: str
    code: int
    source: Source
    start_ns: int
    step: int
    end_ns: int | None = None
    end_step: int | None = None
    is_cancelled: bool = False
    """It was none, as turned out later."""
    count: int = 1
    is_told: bool = False
    account: PeakAccount | None = None
    """Of its peak, while it lasts."""
    peak_bytes: int | None = None
    volume_bytes: int | None = None

    def data(self, skipped: int) -> dict[str, Any]:
        """The data of its event; ``skipped`` stretches before it were not told."""
        return {
            "id": self.id,
            "phase": self.name,
            "code": self.code,
            "source": self.source,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "end_step": self.end_step,
            "count": self.count,
            "skipped": skipped,
            "peak_bytes": self.peak_bytes,
            "volume_bytes": self.volume_bytes,
        }

    def add_peaks_of(self, other: Stretch) -> None:
        """It goes on with another one, and what is not known of that is not known of both."""
        if self.peak_bytes is None or other.peak_bytes is None:
            self.peak_bytes = None
        else:
            self.peak_bytes = max(self.peak_bytes, other.peak_bytes)
        if self.volume_bytes is None or other.volume_bytes is None:
            self.volume_bytes = None
        else:
            self.volume_bytes += other.volume_bytes

    def text(self) -> str:
        """The event in words."""
        if self.end_ns is None:
            return self.name
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.name}, {_duration_text(_length_ns(self))}{times}"


class Stretches:
    """Takes stretches as they begin, and gives back those to tell, at most about one a second.

    Stretches that follow each other closely, with no step in between, become one; what was
    recognised, and is over at once, is no stretch. The first of each name that the user gave is
    told at once, because it says which name its code stands for.
    """

    def __init__(self) -> None:
        self._open: list[Stretch] = []
        self._held: Stretch | None = None
        self._named: set[int] = set()
        self._next_id = 0
        self._skipped = 0
        self._tokens = _BURST
        self._filled_ns = 0

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to tell unless something begins."""
        return not self._open and self._held is None

    def begin(self, stretch: Stretch) -> None:
        """Take one; ids rise, and a gap in them counts as skipped."""
        self._skipped += max(0, stretch.id - self._next_id)
        self._next_id = stretch.id + 1
        self._open.append(stretch)

    def due(self, now_ns: int, *, closing: bool = False) -> list[tuple[Stretch, dict[str, Any]]]:
        """Stretches to tell now, with the data of their events.

        Args:
            now_ns: the time.
            closing: nothing follows: everything ends now and is told.
        """
        self._fill(now_ns)
        told: list[Stretch] = []
        still_open: list[Stretch] = []
        for stretch in self._open:
            if closing and stretch.end_ns is None:
                stretch.end_ns = now_ns
            if stretch.end_ns is not None:
                self._take_finished(stretch, told)
            else:
                self._take_open(stretch, now_ns, told)
                still_open.append(stretch)
        self._open = still_open
        held = self._held
        if held is not None and (closing or now_ns - (held.end_ns or 0) >= _HOLD_NS):
            self._release(told)
        answer = [(stretch, stretch.data(0)) for stretch in told]
        if answer and self._skipped:
            answer[0][1]["skipped"], self._skipped = self._skipped, 0
        return answer

    def _take_open(self, stretch: Stretch, now_ns: int, told: list[Stretch]) -> None:
        is_new_name = stretch.code >= FIRST_USER_PHASE and stretch.code not in self._named
        is_long = now_ns - stretch.start_ns >= OPEN_AFTER_NS
        if not stretch.is_told and (is_new_name or (is_long and self._may_tell())):
            self._tell(stretch, told)

    def _take_finished(self, stretch: Stretch, told: list[Stretch]) -> None:
        if stretch.is_cancelled:
            if stretch.is_told:
                # What was told is taken back: it ended when it began.
                stretch.end_ns = stretch.start_ns
                told.append(stretch)
            return
        if stretch.is_told:
            told.append(stretch)
            return
        held = self._held
        if held is not None and _continues(held, stretch):
            held.end_ns, held.end_step = stretch.end_ns, stretch.end_step
            held.count += 1
            held.add_peaks_of(stretch)
            return
        self._release(told)
        self._held = stretch

    def _release(self, told: list[Stretch]) -> None:
        held, self._held = self._held, None
        if held is None or _length_ns(held) < _SHORTEST_NS.get(held.source, 0):
            return
        is_new_name = held.code >= FIRST_USER_PHASE and held.code not in self._named
        if is_new_name or self._may_tell():
            self._tell(held, told)
        else:
            self._skipped += held.count

    def _tell(self, stretch: Stretch, told: list[Stretch]) -> None:
        stretch.is_told = True
        self._named.add(stretch.code)
        told.append(stretch)

    def _fill(self, now_ns: int) -> None:
        if self._filled_ns:
            passed_s = max(0, now_ns - self._filled_ns) / 1e9
            self._tokens = min(_BURST, self._tokens + passed_s * _A_SECOND)
        self._filled_ns = now_ns

    def _may_tell(self) -> bool:
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _length_ns(stretch: Stretch) -> int:
    return (stretch.end_ns or 0) - stretch.start_ns


def _continues(held: Stretch | None, stretch: Stretch) -> bool:
    """Whether one follows the other so closely, with no step in between, that they are one."""
    if held is None or (held.name, held.source) != (stretch.name, stretch.source):
        return False
    if held.end_step != stretch.step:
        return False
    return stretch.start_ns - (held.end_ns or 0) < _MERGE_GAP_NS


def _duration_text(duration_ns: int) -> str:
    seconds = duration_ns / 1e9
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
