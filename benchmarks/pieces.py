"""Times named functions where they are called, in a job that runs: each without those inside it."""

from __future__ import annotations

import functools
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Piece(NamedTuple):
    """A method, and what it is called in the table."""

    owner: Any
    name: str
    label: str


class Pieces:
    """Wraps methods of classes while it is entered; call it before the objects are made.

    Args:
        pieces: what is timed; a method that this version does not have is left out.
        outermost: label of what ends a turn: what the others took until then belongs to it.
    """

    def __init__(self, pieces: Sequence[Piece], outermost: str) -> None:
        self._pieces = pieces
        self._outermost = outermost
        self._thread: int | None = None
        self._inside_ns: list[int] = []
        self._turn: dict[str, int] = {}
        self._turns: list[dict[str, int]] = []
        self._originals: list[tuple[Any, str, Any]] = []
        self.is_on = False
        """Whether it is measured now."""

    def __enter__(self) -> Pieces:
        for piece in self._pieces:
            original = piece.owner.__dict__.get(piece.name)
            if original is not None:
                self._originals.append((piece.owner, piece.name, original))
                setattr(piece.owner, piece.name, self._timed(original, piece.label))
        return self

    def __exit__(self, *error: object) -> None:
        for owner, name, original in reversed(self._originals):
            setattr(owner, name, original)

    def follow(self, thread: int | None) -> None:
        """Time what this thread calls, and no other."""
        self._thread = thread

    def table(self) -> list[str]:
        """A line for each piece: the median of a turn, and the mean."""
        turns = self._turns
        if not turns:
            return ["  nothing was measured"]
        labels = list(dict.fromkeys(label for turn in turns for label in turn))
        rows: list[tuple[str, float, float]] = []
        for label in labels:
            values = [turn.get(label, 0) / 1e3 for turn in turns]
            rows.append((label, statistics.median(values), statistics.fmean(values)))
        rows.sort(key=lambda row: -row[2])
        totals = [sum(turn.values()) / 1e3 for turn in turns]
        rows.append(("all of it", statistics.median(totals), statistics.fmean(totals)))
        return [f"  {label:44}{median:9.1f}{mean:9.1f}" for label, median, mean in rows]

    def _timed(self, original: Callable[..., Any], label: str) -> Callable[..., Any]:
        clock_ns = time.thread_time_ns
        is_outermost = label == self._outermost

        @functools.wraps(original)
        def timed(*args: Any, **options: Any) -> Any:
            if not self.is_on or threading.get_ident() != self._thread:
                return original(*args, **options)
            inside = self._inside_ns
            inside.append(0)
            begin_ns = clock_ns()
            try:
                return original(*args, **options)
            finally:
                spent_ns = clock_ns() - begin_ns
                self._turn[label] = self._turn.get(label, 0) + spent_ns - inside.pop()
                if inside:
                    inside[-1] += spent_ns
                if is_outermost:
                    self._turns.append(self._turn)
                    self._turn = {}

        timed.__dict__["_torchdynamo_disable"] = True
        return timed
