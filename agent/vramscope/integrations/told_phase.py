"""The one phase that a framework says it is in."""

from __future__ import annotations

from vramscope.phases.phase import Phase


class ToldPhase:
    """At most one phase at a time: entering one leaves the one before."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._phase: Phase | None = None

    def enter(self, name: str) -> None:
        """Be in a phase; in the same one, stay."""
        if name != self._name:
            self.leave()
            self._name, self._phase = name, Phase(name, "callback")
            self._phase.begin()

    def leave(self) -> None:
        """Be in none."""
        phase, self._name, self._phase = self._phase, None, None
        if phase is not None:
            phase.end()
