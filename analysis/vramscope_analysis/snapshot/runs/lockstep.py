"""Decodes many dicts of one template at once: one step for all of them, then the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.snapshot.pickles.object_pool import IN_A_RUN, ObjectPool
from vramscope_analysis.snapshot.pickles.opcodes import Op
from vramscope_analysis.snapshot.runs.integers import read_integers
from vramscope_analysis.snapshot.runs.stack_tails import MALFORMED, StackTails
from vramscope_analysis.snapshot.runs.template import (
    CONSTANTS,
    MOST_TEXT_BYTES,
    Kind,
    Template,
    TemplateColumn,
)
from vramscope_analysis.snapshot.runs.window import Window

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
    """What decoding n candidates as dicts of one template gave.

    ``slots`` are those of them that are such dicts; whatever is said of others means nothing.
    ``ends`` (n) are the offsets behind them, ``counts`` (n) how many objects each memoized,
    ``bases`` (n) the memo index of the first where the pickle says it, else -1. ``columns`` (by
    key, n): integers as they are; of other kinds memo indices, and ~number for objects of the
    pool, or for stack tails in a column of stacks. ``written`` (by key) is how many objects a row
    has memoized before that value.
    """

    template: Template
    slots: Places
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
            Op.SHORT_BINUNICODE: self._short_texts,
            Op.BINUNICODE: self._long_texts,
        }
        for code, value in CONSTANTS.items():
            self._object_readers[code] = self._constant_reader(value)
        self._stack_readers: dict[int, Reader] = {
            Op.BINGET: self._short_gets,
            Op.LONG_BINGET: self._long_gets,
            Op.EMPTY_LIST: self._stacks,
        }

    def decode(self, starts: Numbers, nexts: Numbers) -> Decoded:
        """Decode what begins at ``starts`` (n); ``nexts`` is where the next candidate begins."""
        self._fits = np.ones(len(starts), np.bool_)
        self._bases = np.full(len(starts), -1, np.int64)
        self._start_counting()
        self._nexts = nexts
        at = starts + 1
        if self._template.memo:
            sizes = self._memo_bytes(at)
            self._memoize(None, at, sizes, np.full(len(starts), IN_A_RUN))
            at += sizes
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
        slots = np.flatnonzero(self._fits)
        all_counts: Numbers = np.broadcast_to(np.asarray(self._counts, np.int64), ends.shape)
        return Decoded(
            self._template, slots, ends, all_counts, self._bases, columns, written, self._points
        )

    def _start_counting(self) -> None:
        self._counts, self._points = 0, []

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
        known = np.zeros(len(at), np.bool_)
        for code, reader in readers.items():
            places = np.flatnonzero(codes == code)
            if len(places):
                references[places], ends[places] = reader(places, at[places])
                known[places] = True
        self._fits &= known
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
        sizes = self._memo_bytes(at)
        self._memoize(None, at, sizes, codes)
        return ~codes, at + sizes

    def _short_texts(self, places: Places | None, at: Numbers) -> tuple[Numbers, Numbers]:
        return self._texts(places, at + 2, self._window.padded[at + 1].astype(np.int64))

    def _long_texts(self, places: Places | None, at: Numbers) -> tuple[Numbers, Numbers]:
        sizes = (self._window.words[at] >> 8) & 0xFFFFFFFF
        self._unfit(places, sizes > MOST_TEXT_BYTES)
        return self._texts(places, at + 5, np.minimum(sizes, MOST_TEXT_BYTES))

    def _texts(
        self, places: Places | None, starts: Numbers, sizes: Numbers
    ) -> tuple[Numbers, Numbers]:
        ends = starts + sizes
        if len(sizes) and int(sizes.max()) < _BYTES_IN_A_WORD:
            first = int(sizes[0])
            masks = (1 << 8 * (first if (sizes == first).all() else sizes)) - 1
            words = self._window.words[starts] & masks
            codes = _numbered(words | (sizes << 56), self._text_of_word)
        else:
            raw = self._window.bytes
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            texts = [self._pool.text(raw[start:end]) for start, end in spans]
            codes = np.array([-1 if text is None else text for text in texts], np.int64)
        self._unfit(places, codes < 0)
        memo_sizes = self._memo_bytes(ends)
        self._memoize(places, ends, memo_sizes, codes)
        return ~codes, ends + memo_sizes

    def _text_of_word(self, word: int) -> int:
        text = self._pool.text(word.to_bytes(_BYTES_IN_A_WORD, "little")[: word >> 56])
        return -1 if text is None else text

    def _stacks(self, places: Places | None, at: Numbers) -> tuple[Numbers, Numbers]:
        ends = self._nexts if places is None else self._nexts[places]
        at = at + 1
        sizes = self._memo_bytes(at)
        starts = at + sizes
        # What lies before the next dict: the end of this one, and where a batch of a list ends
        # that of the batch, too.
        last = self._window.padded[ends - 1]
        ends = np.where(last == Op.MARK, ends - 3, ends - 1)
        raw = self._window.bytes
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        numbers = self._tails.numbers([raw[start:end] for start, end in spans])
        tails = np.array(numbers, np.int64)
        self._unfit(places, (tails == MALFORMED) | (ends < starts))
        self._memoize(places, at, sizes, tails, are_tails=True)
        return ~tails, ends

    # The memo

    def _memo_bytes(self, at: Numbers) -> int | Numbers:
        opcodes = self._window.padded[at]
        return 1 if (opcodes == Op.MEMOIZE).all() else _MEMO_BYTES[opcodes]

    def _memoize(
        self,
        places: Places | None,
        at: Numbers,
        sizes: int | Numbers,
        codes: Numbers,
        *,
        are_tails: bool = False,
    ) -> None:
        """Note what rows put into the memo: those with an opcode of that many bytes for it."""
        if not isinstance(sizes, int):
            which = np.flatnonzero(sizes)
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
