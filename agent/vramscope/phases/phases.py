"""The phase that the process is in, for rows; its stretches, for events.

Phases begin and end on the job's threads, which only append to lists. The sampler thread asks for
the code with every row, and turns what has ended into events a few times a second.

Wiring (observer.py): construct with the clock and the outbox; give it to the step tracker and to
the sampler; ``close`` on detach, when the sampler has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Final

from vramscope.notices import Notices
from vramscope.peaks.phase_peaks import PhasePeaks
from vramscope.phases.stretches import Source, Stretch, Stretches
from vramscope.sampling.clock import Clock
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Event
from vramscope_protocol.series import FIRST_USER_PHASE, OTHER_PHASE, PHASES

MAX_NAMES: Final = 48
"""Different names of the user at most; further ones count as "other"."""

_MAX_NAME: Final = 60
_MAX_WAITING: Final = 4096

_CODES: Final = {name: code for code, name in PHASES.items()}
_TRAIN: Final = _CODES["train"]
_DATA_WAIT: Final = _CODES["data_wait"]


class Phases:
    """Knows the phase of the process.

    Args:
        clock: times of stretches.
        emit: takes the events.
        notices: told when a name cannot be kept.
    """

    def __init__(self, clock: Clock, emit: Callable[[Event], None], notices: Notices) -> None:
        self._clock = clock
        self._emit = emit
        self._notices = notices
        self._ids = count()
        self._user_codes = count(FIRST_USER_PHASE)
        self._codes = dict(_CODES)
        # No lock anywhere: append and remove are atomic, and garbage collection may end a phase
        # in the middle of another one's end.
        self._active: list[Stretch] = []
        self._begun: deque[Stretch] = deque(maxlen=_MAX_WAITING)
        self._stretches = Stretches()
        self._step = 0
        self.is_waiting_for_data = False
        """Whether the training thread is waiting for a batch at this moment."""
        self.peaks: PhasePeaks | None = None
        """Takes the peaks of phases, if they are to be taken."""

    def code(self) -> int:
        """Code of the phase (``vramscope_protocol.series.PHASES``); ``UNKNOWN`` at first."""
        active = self._active[-1:]
        if active:
            return active[0].code
        if self.is_waiting_for_data:
            return _DATA_WAIT
        return _TRAIN if self._step else UNKNOWN

    def name(self) -> str:
        """Name of the phase that lasts; "" in training."""
        active = self._active[-1:]
        return active[0].name if active else ""

    def is_told(self) -> bool:
        """Whether the user or a callback says at this moment what the phase is."""
        return any(each.source in ("user", "callback") for each in list(self._active))

    def step_ended(self, step: int) -> int:
        """``step`` optimizer steps are finished; the code of the phase in which."""
        self._step = step
        # Mostly there is none: the rest is asked for where it matters.
        return self.code() if self._active or self.is_waiting_for_data else _TRAIN

    def begin(self, name: str, source: Source, start_ns: int | None = None) -> Stretch:
        """Enter a phase, on any thread.

        Args:
            name: of the phase, 1 to 60 printable characters; "eval" and "checkpoint" are known.
            source: who says so.
            start_ns: when it began, if not now.
        """
        name, code = self._resolve(name)
        now_ns = self._clock.time_ns() if start_ns is None else start_ns
        stretch = Stretch(next(self._ids), name, code, source, now_ns, self._step)
        if start_ns is None and self.peaks is not None:
            stretch.account = self.peaks.begin()
        self._active.append(stretch)
        self._begun.append(stretch)
        return stretch

    def end(self, stretch: Stretch) -> None:
        """Leave a phase. One that has been left is left alone."""
        if stretch in self._active:
            self._active.remove(stretch)
            if stretch.account is not None and self.peaks is not None:
                stretch.peak_bytes, stretch.volume_bytes = self.peaks.end(stretch.account)
                stretch.account = None
            stretch.end_step = self._step
            # Last: whoever sees that it is over may tell of it at once.
            stretch.end_ns = self._clock.time_ns()

    def cancel(self, stretch: Stretch) -> None:
        """Take back a phase that was none."""
        stretch.is_cancelled = True
        self.end(stretch)

    def waited_for_data(self, start_ns: int) -> None:
        """The training thread waited for a batch, long enough to be told, from ``start_ns``."""
        if not self._active:
            self.end(self.begin(PHASES[_DATA_WAIT], "loader", start_ns))

    def poll(self) -> None:
        """Tell what is due; on the sampler thread."""
        while self._begun:
            self._stretches.begin(self._begun.popleft())
        if not self._stretches.is_idle:
            self._tell(closing=False)

    def close(self) -> None:
        """End every stretch and tell what is left. The sampler has ended."""
        self.poll()
        self._tell(closing=True)

    def _tell(self, *, closing: bool) -> None:
        for stretch, data in self._stretches.due(self._clock.time_ns(), closing=closing):
            self._emit(Event(0, stretch.start_ns, "phase", stretch.step, stretch.text(), data))

    def _resolve(self, name: str) -> tuple[str, int]:
        code = self._codes.get(name)
        if code is not None:
            return name, code
        if not (0 < len(name) <= _MAX_NAME and name.isprintable()):
            self._notices.note(
                "phase_names", f"phase(): expected names of 1 to {_MAX_NAME} printable characters"
            )
        elif len(self._codes) >= len(_CODES) + MAX_NAMES:
            self._notices.note("phase_count", f"phase(): only the first {MAX_NAMES} names are kept")
        else:
            return name, self._codes.setdefault(name, next(self._user_codes))
        return PHASES[OTHER_PHASE], OTHER_PHASE
