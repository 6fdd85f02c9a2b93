"""Turns accepted rows into columns, and fills in what they put into the memo."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.errors import SnapshotError
from vramscope_analysis.snapshot.pickles.object_pool import (
    IN_A_RUN,
    UNSETTLED,
    UNWRITTEN,
    ObjectPool,
)
from vramscope_analysis.snapshot.runs.lockstep import Decoded, MemoPoint, Numbers, Places
from vramscope_analysis.snapshot.runs.run import Coded, Run, RunBlock, RunPart
from vramscope_analysis.snapshot.runs.run_window import RunWindow
from vramscope_analysis.snapshot.runs.stack_tails import StackTails
from vramscope_analysis.snapshot.runs.template import Kind

Memo = NDArray[np.int32]


@dataclass(frozen=True)
class Piece:
    """Accepted rows of one template: their places in the block, slots and memo bases (n each)."""

    decoded: Decoded
    places: Places
    slots: Places
    bases: Numbers

    def picked(self, values: Numbers) -> Numbers:
        """Of one value for each decoded row, those of the accepted rows."""
        first, last = int(self.slots[0]), int(self.slots[-1])
        if last - first + 1 == len(self.slots):
            return values[first : last + 1]
        return values[self.slots]

    def put(self, point: MemoPoint) -> tuple[Numbers, Numbers]:
        """The memo indices that accepted rows write at a memo point, and the codes there."""
        ordinals = point.ordinals
        if point.rows is None:
            picked = ordinals if isinstance(ordinals, int) else self.picked(ordinals)
            return self.bases + picked, self.picked(point.codes)
        place_of_slot = np.full(len(self.decoded.ends), -1, np.int64)
        place_of_slot[self.slots] = np.arange(len(self.slots))
        places = place_of_slot[point.rows]
        accepted = np.flatnonzero(places >= 0)
        picked = ordinals if isinstance(ordinals, int) else ordinals[accepted]
        return self.bases[places[accepted]] + picked, point.codes[accepted]


@dataclass(frozen=True)
class Stretch:
    """Rows of a block from ``place`` on that follow each other in the pickle.

    ``ends`` says how many objects they had memoized after each row; a number: the same for each.
    """

    block: RunBlock
    place: int
    ends: int | NDArray[np.int32]

    def row(self, object_index: int) -> int:
        """The row in the block that memoized this object first of its own."""
        if isinstance(self.ends, int):
            return self.place + object_index // self.ends
        return self.place + int(self.ends.searchsorted(object_index, side="right"))


@dataclass(frozen=True)
class _Patch:
    """A value that is settled only when the rows before it are.

    Where it stands, and its memo index; of a list that is written out, ~ its number as a tail.
    """

    place: int
    values: NDArray[np.int32]
    at: int
    reference: int


class Settlement:
    """Settles windows and remembers where the dicts of runs are, should one be fetched again."""

    def __init__(self, pool: ObjectPool, tails: StackTails) -> None:
        self._pool = pool
        self._tails = tails
        # Accepted stretches: the memo index each begins with, and the rows.
        self._first_indices: list[int] = []
        self._stretches: list[Stretch] = []

    def settle(self, window: RunWindow) -> None:
        """Make columns of what the window has accepted since the last time."""
        if not window.accepted:
            return
        bases, pieces = _accepted(window)
        memo: Memo = np.frombuffer(self._pool.memo, np.int32)
        for piece in pieces:
            for point in piece.decoded.points:
                if not point.are_tails:
                    indices, codes = piece.put(point)
                    memo[indices] = codes
        for piece in pieces:
            self._settle_tails(piece, memo, int(bases[0]))
        patches: list[_Patch] = []
        block = window.block
        for piece in pieces:
            columns = {
                key: self._column(piece, key, memo, patches) for key in piece.decoded.columns
            }
            rows = piece.places.astype(np.int32) if len(pieces) > 1 else None
            keys = piece.decoded.template.keys
            block.parts.append(RunPart(keys, len(piece.places), rows, columns))
        self._note_stretches(window)
        if patches:
            lasts = bases + _counts(window) - 1
            for patch in sorted(patches, key=lambda patch: patch.place):
                self._patch(patch, int(bases[patch.place]), int(lasts[patch.place]))
        window.settled()

    def fetch(self, index: int) -> Any:
        """The dict of a run that this memo index stands for, made now and kept."""
        place = bisect_right(self._first_indices, index) - 1
        stretch = self._stretches[place]
        row = stretch.row(index - self._first_indices[place])
        code = self._pool.add(Run(stretch.block, row, 1).dicts()[0])
        self._pool.memo[index] = code
        return self._pool.objects[code]

    def _note_stretches(self, window: RunWindow) -> None:
        place = 0
        for row, end, base in window.accepted:
            self._first_indices.append(base)
            self._stretches.append(Stretch(window.block, place, _ends(window.counts[row:end])))
            place += end - row

    def _settle_tails(self, piece: Piece, memo: Memo, first: int) -> None:
        """Build the stacks that are new, but for those that hold rows that are settled now.

        ``first`` is the first memo index of these rows.
        """
        last = piece.decoded.template.columns[-1]
        if last.kind is not Kind.STACK:
            return
        references = piece.picked(piece.decoded.columns[last.key])
        inline = references < 0
        tails = ~references[inline]
        highest = self._tails.highest[tails]
        if (highest >= piece.bases[inline]).any():
            raise unwritten(int(highest.max()))
        new: list[int] = np.unique(tails[self._tails.codes[tails] < 0]).tolist()
        for tail in new:
            objects = self._tails.references[tail]
            if all(memo[at] >= 0 or (memo[at] == IN_A_RUN and at < first) for at in objects):
                self._build(tail)
        for point in piece.decoded.points:
            if point.are_tails:
                indices, numbers = piece.put(point)
                codes = self._tails.codes[numbers]
                memo[indices] = np.where(codes < 0, UNSETTLED, codes)

    def _build(self, tail: int) -> None:
        """Build the list that a stack tail stands for."""
        objects = [self._object(reference) for reference in self._tails.references[tail]]
        self._tails.codes[tail] = self._pool.add(objects)

    def _object(self, reference: int) -> Any:
        code = self._pool.memo[reference]
        if code == IN_A_RUN:
            return self.fetch(reference)
        if code < 0:
            raise unwritten(reference)
        return self._pool.objects[code]

    def _column(self, piece: Piece, key: str, memo: Memo, patches: list[_Patch]) -> Coded:
        decoded = piece.decoded
        values = piece.picked(decoded.columns[key])
        kind = next(column.kind for column in decoded.template.columns if column.key == key)
        if kind is Kind.INTEGER:
            return Coded(_compact(values))
        inline = values < 0
        if not inline.any():
            _check_fetched(piece, key, slice(None), values)
            codes = memo[values]
        else:
            direct = ~values[inline]
            codes = np.empty(len(values), np.int32)
            codes[inline] = self._tails.codes[direct] if kind is Kind.STACK else direct
            fetched = np.flatnonzero(~inline)
            if len(fetched):
                _check_fetched(piece, key, fetched, values[fetched])
                codes[fetched] = memo[values[fetched]]
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            self._note_patches(piece, codes, unknown, values, patches)
            return Coded(codes, self._pool.objects)
        return Coded(_compact(codes), self._pool.objects)

    def _note_patches(
        self,
        piece: Piece,
        codes: NDArray[np.int32],
        rows: Places,
        references: Numbers,
        patches: list[_Patch],
    ) -> None:
        for row in rows.tolist():
            reference = int(references[row])
            if reference >= 0 and codes[row] == UNWRITTEN:
                raise unwritten(reference)
            patches.append(_Patch(int(piece.places[row]), codes, row, reference))

    def _patch(self, patch: _Patch, base: int, last: int) -> None:
        """Put what was not settled before in its place; the rows before are settled now.

        ``base`` and ``last`` are the memo indices of the row's first and last object.
        """
        memo = self._pool.memo
        if patch.reference < 0:
            tail = ~patch.reference
            if self._tails.codes[tail] < 0:
                self._build(tail)
            code = int(self._tails.codes[tail])
            # The list itself, unless it is not memoized.
            if memo[last] == UNSETTLED:
                memo[last] = code
        else:
            if patch.reference == base:
                raise SnapshotError("a dict contains itself")
            self._object(patch.reference)
            code = memo[patch.reference]
        patch.values[patch.at] = code


def _accepted(window: RunWindow) -> tuple[Numbers, list[Piece]]:
    """The memo bases of all accepted rows, and the rows by template."""
    rows = np.concatenate([np.arange(row, end) for row, end, _ in window.accepted])
    before = window.memo_before
    bases = np.concatenate(
        [before[row:end] - before[row] + base for row, end, base in window.accepted]
    )
    parts = window.part[rows]
    pieces: list[Piece] = []
    for index, decoded in enumerate(window.decoded):
        places = np.flatnonzero(parts == index)
        if len(places):
            slots = window.slot[rows[places]].astype(np.intp)
            pieces.append(Piece(decoded, places, slots, bases[places]))
    return bases, pieces


def _counts(window: RunWindow) -> Numbers:
    """How many objects each accepted row memoizes."""
    return np.concatenate([window.counts[row:end] for row, end, _ in window.accepted])


def _check_fetched(piece: Piece, key: str, rows: Places | slice, references: Numbers) -> None:
    """Refuse what is fetched from the memo before it is there."""
    written = piece.decoded.written[key]
    before = written if isinstance(written, int) else piece.picked(written)[rows]
    if (references >= piece.bases[rows] + before).any():
        raise unwritten(int(references.max()))


def _ends(counts: Numbers) -> int | NDArray[np.int32]:
    first = int(counts[0])
    return first if bool((counts == first).all()) else np.cumsum(counts).astype(np.int32)


def _compact(values: NDArray[Any]) -> NDArray[Any]:
    """The same values; one value and a view of it where all are equal."""
    if bool((values == values[0]).all()):
        return np.broadcast_to(values[:1].copy(), values.shape)
    # Not a small piece that would keep all of a large array in memory.
    whole = values.base if isinstance(values.base, np.ndarray) else values
    return values if 2 * len(values) >= len(whole) else values.copy()


def unwritten(index: int) -> SnapshotError:
    return SnapshotError(
        f"memo index {index:,} is read before it is written: the pickle is damaged"
    )
