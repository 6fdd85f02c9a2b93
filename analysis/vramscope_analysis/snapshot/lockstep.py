"""Decodes many dicts of one template at once: one step for all of them, then the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.integers import read_integers
from vramscope_analysis.snapshot.object_pool import IN_A_RUN, ObjectPool
from vramscope_analysis.snapshot.opcodes import Op
from vramscope_analysis.snapshot.stack_tails import MALFORMED, StackTails
from vramscope_analysis.snapshot.template import CONSTANTS, Kind, Template, TemplateColumn
from vramscope_analysis.snapshot.window import Window

Numbers = NDArray[np.int64]
Places = NDArray[np.intp]
# Rows (None: all), the offsets of their values -> references, offsets behind the values.
Reader = Callable[[Places | None, Numbers], tuple[Numbers, Numbers]]

_MEMO_BYTES = np.zeros(256, np.int64)
_MEMO_BYTES[[Op.MEMOIZE, Op.BINPUT, Op.LONG_BINPUT]] = [1, 2, 5]
_BYTES_IN_A_WORD = 8


@dataclass
class MemoPoint:
    """Objects that rows put into the memo: ``codes`` (n) are their numbers in the pool.

    ``rows`` (n) are the rows, None for all; ``ordinals`` how many objects the same row memoized
    before. With ``are_tails`` the codes are numbers of stack tails instead.
    """

    rows: Places | None
    ordinals: int | Numbers
    codes: Numbers
    are_tails: bool = False


@dataclass
class Decoded:
    """Dicts of one template, n rows.

    ``rows`` are their places among the candidates; ``ends`` the offsets behind them, ``counts``
    how many objects each memoized, ``bases`` the memo index of the first where the pickle says
    it, else -1. ``columns`` (by key, n): integers as they are; of other kinds memo indices, and
    ~number for objects of the pool, or for stack tails in a column of stacks. ``written`` (by
    key) is how many objects a row has memoized before that value.
    """

    template: Template
    rows: Places
    ends: Numbers
    counts: Numbers
    bases: Numbers
    columns: dict[str, Numbers]
    written: dict[str, int | Numbers]
    points: list[MemoPoint]


class Lockstep:
    """Decodes the dicts of one template that begin at some of the candidates of a window."""

    def __init__(
        self, window: Window, template: Template, pool: ObjectPool, tails: StackTails
    ) -> None:
        self._window = window
        self._template = template
        self._pool = pool
        self._tails = tails
        self._fits = np.zeros(0, np.bool_)
        self._counts: int | Numbers = 0
        self._bases = np.zeros(0, np.int64)
        self._points: list[MemoPoint] = []
        self._nexts = np.zeros(0, np.int64)
        self._object_readers: dict[int, Reader] = {
            Op.BINGET: self._short_gets,
            Op.LONG_BINGET: self._long_gets,
            Op.SHORT_BINUNICODE: self._texts,
        }
        for code, value in CONSTANTS.items():
            self._object_readers[code] = self._constant_reader(value)
        self._stack_readers: dict[int, Reader] = {
            Op.BINGET: self._short_gets,
            Op.LONG_BINGET: self._long_gets,
            Op.EMPTY_LIST: self._stacks,
        }

    def decode(self, rows: Places, starts: Numbers, nexts: Numbers) -> Decoded:
        """Decode what begins at ``starts`` (n); ``nexts`` is where the next candidate begins.

        What is no whole dict of this template is left out; ``rows`` numbers the candidates.
        """
        self._fits = np.ones(len(starts), np.bool_)
        self._bases = np.full(len(starts), -1, np.int64)
        self._counts, self._points, self._nexts = 0, [], nexts
        at = starts + 1
        if self._template.memo:
            self._memoize(None, at, np.full(len(starts), IN_A_RUN))
            at += self._memo_bytes(at)
        at += 1
        columns: dict[str, Numbers] = {}
        written: dict[str, int | Numbers] = {}
        for column in self._template.columns:
            at = self._key(column, at)
            counts = self._counts
            written[column.key] = counts if isinstance(counts, int) else counts.copy()
            columns[column.key], at = self._value(column.kind, at)
        self._fits &= self._window.padded[at] == Op.SETITEMS
        ends = at + 1
        self._fits &= ends <= self._window.size
        return self._kept(rows, ends, columns, written)

    def _kept(
        self,
        rows: Places,
        ends: Numbers,
        columns: dict[str, Numbers],
        written: dict[str, int | Numbers],
    ) -> Decoded:
        counts: Numbers = np.broadcast_to(np.asarray(self._counts, np.int64), ends.shape)
        decoded = Decoded(
            self._template, rows, ends, counts, self._bases, columns, written, self._points
        )
        return decoded if self._fits.all() else _kept(decoded, np.flatnonzero(self._fits))

    # Keys and values

    def _key(self, column: TemplateColumn, at: Numbers) -> Numbers:
        size = len(column.get)
        expected = int.from_bytes(column.get, "little")
        self._fits &= (self._window.words[at] & ((1 << 8 * size) - 1)) == expected
        return at + size

    def _value(self, kind: Kind, at: Numbers) -> tuple[Numbers, Numbers]:
        if kind is Kind.INTEGER:
            return self._integers(at)
        if kind is Kind.PAIR:
            return self._pairs(at)
        readers = self._stack_readers if kind is Kind.STACK else self._object_readers
        return self._by_code(at, readers)

    def _by_code(self, at: Numbers, readers: dict[int, Reader]) -> tuple[Numbers, Numbers]:
        codes = self._window.padded[at]
        if len(codes) and (codes == codes[0]).all() and int(codes[0]) in readers:
            return readers[int(codes[0])](None, at)
        references = np.zeros(len(at), np.int64)
        ends = at.copy()
        left = len(at)
        for code, reader in readers.items():
            places = np.flatnonzero(codes == code)
            if len(places):
                references[places], ends[places] = reader(places, at[places])
                left -= len(places)
        if left:
            self._fits &= np.isin(codes, list(readers))
        return references, ends

    def _integers(self, at: Numbers) -> tuple[Numbers, Numbers]:
        values, ends, fits = read_integers(self._window, at)
        self._fits &= fits
        return values, ends

    def _short_gets(self, _: Places | None, at: Numbers) -> tuple[Numbers, Numbers]:
        return self._window.padded[at + 1].astype(np.int64), at + 2

    def _long_gets(self, _: Places | None, at: Numbers) -> tuple[Numbers, Numbers]:
        return (self._window.words[at] >> 8) & 0xFFFFFFFF, at + 5

    def _constant_reader(self, value: bool | None) -> Reader:
        def read(_: Places | None, at: Numbers) -> tuple[Numbers, Numbers]:
            return np.full(len(at), ~self._pool.constant(value), np.int64), at + 1

        return read

    def _pairs(self, at: Numbers) -> tuple[Numbers, Numbers]:
        first, at = self._integers(at)
        second, at = self._integers(at)
        self._fits &= self._window.padded[at] == Op.TUPLE2
        self._fits &= (first >= 0) & (first < 1 << 31) & (second >= 0) & (second < 1 << 31)
        both = np.where(self._fits, (first << 32) | second, 0)
        codes = _numbered(both, lambda pair: self._pool.pair(pair >> 32, pair & 0xFFFFFFFF))
        at = at + 1
        self._memoize(None, at, codes)
        return ~codes, at + self._memo_bytes(at)

    def _texts(self, places: Places | None, at: Numbers) -> tuple[Numbers, Numbers]:
        sizes = self._window.padded[at + 1].astype(np.int64)
        starts = at + 2
        ends = starts + sizes
        if len(sizes) and int(sizes.max()) < _BYTES_IN_A_WORD:
            words = self._window.words[starts] & ((1 << 8 * sizes) - 1)
            codes = _numbered(words | (sizes << 56), self._text_of_word)
        else:
            raw = self._window.bytes
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            texts = [self._pool.text(raw[start:end]) for start, end in spans]
            codes = np.array([-1 if text is None else text for text in texts], np.int64)
        self._unfit(places, codes < 0)
        self._memoize(places, ends, codes)
        return ~codes, ends + self._memo_bytes(ends)

    def _text_of_word(self, word: int) -> int:
        text = self._pool.text(word.to_bytes(_BYTES_IN_A_WORD, "little")[: word >> 56])
        return -1 if text is None else text

    def _stacks(self, places: Places | None, at: Numbers) -> tuple[Numbers, Numbers]:
        ends = self._nexts if places is None else self._nexts[places]
        starts = at + 1 + self._memo_bytes(at + 1)
        # What lies before the next dict: the end of this one, and where a batch of a list ends
        # that of the batch, too.
        last = self._window.padded[ends - 1]
        ends = np.where(last == Op.MARK, ends - 3, ends - 1)
        raw = self._window.bytes
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        numbers = self._tails.numbers([raw[start:end] for start, end in spans])
        tails = np.array(numbers, np.int64)
        self._unfit(places, (tails == MALFORMED) | (ends < starts))
        self._memoize(places, at + 1, tails, are_tails=True)
        return ~tails, ends

    # The memo

    def _memo_bytes(self, at: Numbers) -> Numbers:
        return _MEMO_BYTES[self._window.padded[at]]

    def _memoize(
        self, places: Places | None, at: Numbers, codes: Numbers, *, are_tails: bool = False
    ) -> None:
        """Note what rows put into the memo: those that have an opcode for it at ``at``."""
        is_put = self._memo_bytes(at) > 0
        if not is_put.all():
            which = np.flatnonzero(is_put)
            places = which if places is None else places[which]
            at, codes = at[which], codes[which]
        if not len(codes):
            return
        ordinals: int | Numbers
        if places is None:
            ordinals = self._counts
            self._counts = ordinals + 1
        else:
            if isinstance(self._counts, int):
                self._counts = np.full(len(self._fits), self._counts, np.int64)
            ordinals = self._counts[places]
            self._counts[places] += 1
        self._points.append(MemoPoint(places, ordinals, codes, are_tails))
        self._check_puts(places, at, ordinals)

    def _check_puts(self, places: Places | None, at: Numbers, ordinals: int | Numbers) -> None:
        """Where the pickle says the index itself: it is the next one, as all picklers have it."""
        opcodes = self._window.padded[at]
        if self._template.memo not in (Op.BINPUT, Op.LONG_BINPUT):
            self._unfit(places, opcodes != Op.MEMOIZE)
            return
        short = self._window.padded[at + 1].astype(np.int64)
        long = (self._window.words[at] >> 8) & 0xFFFFFFFF
        bases = np.where(opcodes == Op.BINPUT, short, long) - ordinals
        rows: Places | slice = slice(None) if places is None else places
        if len(self._points) == 1:
            self._bases[rows] = bases
        self._unfit(places, (opcodes == Op.MEMOIZE) | (self._bases[rows] != bases))

    def _unfit(self, places: Places | None, wrong: NDArray[np.bool_]) -> None:
        if places is None:
            self._fits &= ~wrong
        elif wrong.any():
            self._fits[places[wrong]] = False


def _numbered(values: Numbers, number_of: Callable[[int], int]) -> Numbers:
    """The number of each value, asked for once for each different value."""
    if len(values) and (values == values[0]).all():
        return np.full(len(values), number_of(int(values[0])), np.int64)
    different, places = np.unique(values, return_inverse=True)
    numbers = [number_of(value) for value in different.tolist()]
    return np.array(numbers, np.int64)[places]


def _kept(decoded: Decoded, kept: Places) -> Decoded:
    return Decoded(
        decoded.template,
        decoded.rows[kept],
        decoded.ends[kept],
        decoded.counts[kept],
        decoded.bases[kept],
        {key: column[kept] for key, column in decoded.columns.items()},
        {
            key: written if isinstance(written, int) else written[kept]
            for key, written in decoded.written.items()
        },
        [_kept_point(point, kept, len(decoded.rows)) for point in decoded.points],
    )


def _kept_point(point: MemoPoint, kept: Places, rows_before: int) -> MemoPoint:
    if point.rows is None:
        which: Places = kept
        rows = None
    else:
        renumbered = np.full(rows_before, -1, np.intp)
        renumbered[kept] = np.arange(len(kept))
        which = np.flatnonzero(renumbered[point.rows] >= 0)
        rows = renumbered[point.rows[which]]
    ordinals = point.ordinals if isinstance(point.ordinals, int) else point.ordinals[which]
    return MemoPoint(rows, ordinals, point.codes[which], point.are_tails)
