"""A session that notes what a framework's callback tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ToldSession:
    """In the place of the process's session: everything that it is told, in order."""

    is_active = True

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.is_stop_wanted = False
        self.frameworks: list[str] = []
        """Those that train now."""

    def framework_begins(self, name: str) -> None:
        """A framework trains."""
        self.frameworks.append(name)

    def framework_ends(self) -> None:
        """It trains no more."""
        self.frameworks.clear()

    def log(self, **values: Any) -> None:
        """Numbers for the step that ends next."""
        self.calls.append(values)

    def framework_step(self) -> None:
        """A step of the framework."""
        self.calls.append("step")

    def begin_phase(self, name: str, source: str) -> Callable[[], None]:
        """A phase; its end is noted too."""
        assert source == "callback"
        self.calls.append(f"begin {name}")
        return lambda: self.calls.append(f"end {name}")

    def outline(self) -> list[str]:
        """Steps and phases in order, equal neighbours once with their number."""
        told = [call for call in self.calls if isinstance(call, str)]
        outline: list[str] = []
        counts: list[int] = []
        for call in told:
            if outline and outline[-1] == call:
                counts[-1] += 1
            else:
                outline.append(call)
                counts.append(1)
        return [
            f"{count} {call}s" if call == "step" and count > 1 else call
            for call, count in zip(outline, counts, strict=True)
        ]

    def logged(self, name: str) -> list[Any]:
        """Every value logged under a name."""
        return [call[name] for call in self.calls if isinstance(call, dict) and name in call]
