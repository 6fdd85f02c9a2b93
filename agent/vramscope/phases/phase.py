"""``vramscope.phase("eval")``: the user, or a framework's callback, says what the job is doing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType

from vramscope import current
from vramscope.guard import guarded
from vramscope.phases.stretches import Source


class Phase(ContextDecorator):
    """A phase to be in: a context manager, a decorator of a function, or ``begin`` and ``end``.

    Phases may be inside each other; the innermost counts. Without an agent this does nothing.

    Args:
        name: of the phase; "eval" and "checkpoint" are known to the page, others are shown as
            they are.
        source: who says so.
    """

    def __init__(self, name: str, source: Source = "user") -> None:
        self._name = name
        self._source: Source = source
        self._ends: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Enter the phase."""
        session = current.session()
        if session is not None:
            with guarded("phase"):
                self._ends.append(session.begin_phase(self._name, self._source))

    def end(self) -> None:
        """Leave the phase; without a begin, nothing."""
        if self._ends:
            with guarded("phase"):
                self._ends.pop()()

    def __enter__(self) -> Phase:
        self.begin()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def _recreate_cm(self) -> Phase:
        # One for each call of a decorated function, which may be on several threads at a time.
        return Phase(self._name, self._source)
