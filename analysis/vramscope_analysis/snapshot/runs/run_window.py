"""A window in which the dicts of one kind are decoded, and which of them follow each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.pickles.opcodes import Op, opcode_bytes
from vramscope_analysis.snapshot.runs.lockstep import Decoded, Numbers, Places
from vramscope_analysis.snapshot.runs.run import Run, RunBlock
from vramscope_analysis.snapshot.runs.window import Window

_NO_PART = -1
_LONG_ROW_BYTES = 8192


class RunWindow:
    """Candidates of a window (n, ascending), with what is known of each.

    ``part`` (n) says which of ``decoded`` a candidate belongs to, -1 for none, and ``slot`` (n)
    which row of it; ``counts`` (n) how many objects it memoizes.
    """

    def __init__(
        self, window: Window, starts: Numbers, decoded: list[tuple[Places, Decoded]]
    ) -> None:
        """``decoded`` comes with the candidates that were decoded."""
        self.window = window
        self.decoded = [rows for _, rows in decoded]
        self.taken_bytes = 0
        self._starts = starts
        if len(decoded) == 1:
            self._use_one(decoded[0][1])
        else:
            self._use(decoded)
        self._refuse_cut_opcodes()
        self._breaks = np.flatnonzero(~self._linked())
        self.memo_before = np.cumsum(self.counts) - self.counts
        # Accepted since the last settlement: first row, row behind the last, memo base.
        self.accepted: list[tuple[int, int, int]] = []
        self.block = RunBlock()
        self._rows_in_block = 0

    def _use(self, decoded: list[tuple[Places, Decoded]]) -> None:
        n = len(self._starts)
        self.part = np.full(n, _NO_PART, np.int8)
        self.slot = np.zeros(n, np.intp)
        self.counts = np.zeros(n, np.int64)
        self._ends = np.full(n, -1, np.int64)
        self._bases = np.full(n, -1, np.int64)
        for index, (candidates, rows) in enumerate(decoded):
            which = candidates[rows.slots]
            self.part[which] = index
            self.slot[which] = rows.slots
            self.counts[which] = rows.counts[rows.slots]
            self._ends[which] = rows.ends[rows.slots]
            self._bases[which] = rows.bases[rows.slots]

    def _use_one(self, rows: Decoded) -> None:
        n = len(self._starts)
        self.part = np.full(n, _NO_PART, np.int8)
        self.part[rows.slots] = 0
        self.slot = np.arange(n)
        self.counts, self._ends, self._bases = rows.counts, rows.ends, rows.bases

    def find(self, position: int) -> int | None:
        """The candidate that begins at this byte of the file and was decoded."""
        offset = self.window.offset(position)
        row = int(self._starts.searchsorted(offset))
        if row == len(self._starts) or self._starts[row] != offset:
            return None
        # Not so where frames are not what they say, and it lies in what was left out.
        if self.window.file_position(offset) != position:
            return None
        return row if self.part[row] != _NO_PART else None

    def stretch_end(self, row: int) -> int:
        """The row behind the last of those that follow this one without a gap."""
        return int(self._breaks[self._breaks.searchsorted(row)]) + 1

    def base(self, row: int) -> int:
        """The memo index that the pickle says for the row's first object; -1 if it says none."""
        return int(self._bases[row])

    def accept(self, row: int, end: int, base: int) -> Run:
        """Take the rows up to ``end`` as they stand, with the memo at ``base``."""
        run = Run(self.block, self._rows_in_block, end - row)
        self.accepted.append((row, end, base))
        self._rows_in_block += end - row
        self.taken_bytes += int(self._ends[end - 1] - self._starts[row])
        return run

    def end_offset(self, end: int) -> int:
        """The offset behind the row before ``end``."""
        return int(self._ends[end - 1])

    def memoized(self, row: int, end: int) -> int:
        """How many objects the rows up to ``end`` put into the memo."""
        return int(self.memo_before[end - 1] - self.memo_before[row] + self.counts[end - 1])

    def settled(self) -> None:
        """Begin a new block: what was accepted so far has been settled."""
        self.accepted = []
        self.block = RunBlock()
        self._rows_in_block = 0

    def _linked(self) -> NDArray[np.bool_]:
        """Whether each row and the next are whole dicts that follow each other in a list."""
        linked = np.zeros(len(self._starts), np.bool_)
        if len(linked) < 2:
            return linked
        behind, following = self._ends[:-1], self._starts[1:]
        gap = following - behind
        # APPENDS and MARK: batches of a list, of 1000 items each.
        between = self.window.words[np.maximum(behind, 0)] & 0xFFFF
        new_batch = (gap == 2) & (between == (Op.APPENDS | Op.MARK << 8))
        is_row = self.part != _NO_PART
        says = self._bases >= 0
        follows = np.where(
            says[:-1], self._bases[:-1] + self.counts[:-1] == self._bases[1:], ~says[1:]
        )
        linked[:-1] = ((gap == 0) | new_batch) & is_row[:-1] & is_row[1:] & follows
        return linked

    def _refuse_cut_opcodes(self) -> None:
        """Refuse rows in which a frame header was left out of the middle of an opcode."""
        cuts = np.array(self.window.cuts, np.int64)
        rows = np.searchsorted(self._starts, cuts) - 1
        inside = rows >= 0
        rows, cuts = rows[inside], cuts[inside]
        inside = (self.part[rows] != _NO_PART) & (cuts < self._ends[rows])
        rows, cuts = rows[inside], cuts[inside]
        # Too long to be gone through.
        long = cuts - self._starts[rows] > _LONG_ROW_BYTES
        self.part[rows[long]] = _NO_PART
        rows, cuts = rows[~long], cuts[~long]
        at = self._starts[rows]
        # All of them opcode by opcode, until each has come to its cut.
        while (before := np.flatnonzero(at < cuts)).size:
            at[before] += opcode_bytes(self.window.words[at[before]])
        self.part[rows[at != cuts]] = _NO_PART
