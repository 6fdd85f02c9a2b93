"""Finds the runs of a pickle: stretches of dicts that are all written alike."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vramscope_analysis.snapshot.limits import over
from vramscope_analysis.snapshot.pickles.object_pool import IN_A_RUN, UNSETTLED, ObjectPool
from vramscope_analysis.snapshot.pickles.opcodes import Op
from vramscope_analysis.snapshot.pickles.source import Data
from vramscope_analysis.snapshot.runs.lockstep import Decoded, Lockstep, Numbers, Places
from vramscope_analysis.snapshot.runs.run import Run, expand, values_of_runs
from vramscope_analysis.snapshot.runs.run_window import RunWindow
from vramscope_analysis.snapshot.runs.settlement import Settlement
from vramscope_analysis.snapshot.runs.stack_tails import StackTails
from vramscope_analysis.snapshot.runs.template import (
    GET_BYTES,
    MEMO_BYTES,
    Template,
    TemplateReader,
)
from vramscope_analysis.snapshot.runs.window import Window

WINDOW_BYTES = 2 << 20
# Shorter stretches are executed opcode by opcode.
LEAST_ROWS = 16
_MOST_FAMILIES = 16
_MOST_TEMPLATES = 8
# How far ahead a template is read, and how far apart attempts to read another one are.
_TEMPLATE_BYTES = 4096
_LEARN_EVERY_BYTES = 1 << 18
# The most that glibc takes into account.
_FREED_BYTES = 31 << 20
# In opcodes that take as long.
_SETTLEMENT_COST = 1000
_FETCH_COST = 50
_ATTEMPT_COST = 3
_REFERENCES_AN_OPCODE = 4
_ATTEMPTS_AT_ONCE = 64
# A window that gave less than this share of its bytes was not worth it.
_WORTH = 0.05


@dataclass
class Family:
    """Dicts that begin alike: memoized by the same opcode, and with the same first key."""

    head: bytes
    templates: list[Template] = field(default_factory=list[Template])
    window: RunWindow | None = None
    # Where in the file to try again, and how long the next pause is.
    idle_until: int = 0
    pause_bytes: int = 0
    learn_from: int = 0
    attempts: int = 0


@dataclass(frozen=True)
class Taken:
    """A run, where in the file it ends, and where the frame ends that this lies in."""

    run: Run
    position: int
    frame_end: int


class RunReader:
    """Takes whole runs off a pickle where the machine would execute dict after dict."""

    def __init__(
        self, data: Data, pool: ObjectPool, most_values: int, report: Callable[[int], None]
    ) -> None:
        """``report`` is called now and then with the bytes done.

        ``most_values`` bounds what runs may become when they do not stay runs.
        """
        self._data = data
        self._pool = pool
        self._most_values = most_values
        self._report = report
        self._tails = StackTails()
        self._settlement = Settlement(pool, self._tails)
        if len(data) > WINDOW_BYTES:
            _keep_freed_memory()
        self._families: dict[bytes, Family] = {}
        self._unsettled: RunWindow | None = None
        self._settlements = 0
        self._spent = 0

    def take(self, at: int, frame_end: int) -> Taken | None:
        """The run of dicts whose first begins at this byte of the file; None if there is none.

        The memo then has room for what the run puts into it.
        """
        self._spent += _ATTEMPT_COST
        family = self._family(at)
        if family is None:
            return None
        window = self._window(family, at, frame_end)
        if window is None:
            return None
        row = window.find(at)
        if row is None:
            self._learn(family, at)
            return None
        base = len(self._pool.memo)
        end = window.stretch_end(row)
        if end - row < LEAST_ROWS or window.base(row) not in (-1, base):
            return None
        if self._unsettled is not window:
            # What this run fetches from the memo may be what another has put there.
            self.settle()
            self._unsettled = window
        run = window.accept(row, end, base)
        self._pool.memo.extend(array("i", [UNSETTLED]) * window.memoized(row, end))
        offset = window.end_offset(end)
        pickle = window.window
        return Taken(run, pickle.file_position(offset), pickle.frame_end(offset))

    def fetch(self, index: int) -> Any:
        """What a memo index stands for that a run has written."""
        self.settle()
        self._spent += _FETCH_COST
        code = self._pool.memo[index]
        return self._settlement.fetch(index) if code == IN_A_RUN else self._pool.objects[code]

    @property
    def cost(self) -> int:
        """What was done beside the runs themselves, counted in opcodes that take as long."""
        return (
            self._spent
            + _SETTLEMENT_COST * self._settlements
            + self._tails.references_read // _REFERENCES_AN_OPCODE
            + len(self._pool.objects)
        )

    def expand(self, items: list[Any]) -> None:
        """Replace the runs in a list by their dicts."""
        if any(type(item) is Run for item in items):
            self.settle()
            self._spent += values_of_runs(items)
            if self._spent > self._most_values:
                raise over("entries are used in too odd a way", self._most_values, "opcodes")
            expand(items)

    def settle(self) -> None:
        """Make columns of all runs taken so far."""
        if self._unsettled is not None:
            self._settlement.settle(self._unsettled)
            self._unsettled = None
            self._settlements += 1

    def _family(self, at: int) -> Family | None:
        start = bytes(self._data[at : at + 16])
        memo = MEMO_BYTES.get(start[1], 0) if len(start) > 1 else 0
        get = start[2 + memo :]
        if start[1 + memo : 2 + memo] != bytes([Op.MARK]) or not get:
            return None
        head = (start[1:2] if memo else b"") + get[: GET_BYTES.get(get[0], 0)]
        family = self._families.get(head)
        if family is None and len(self._families) < _MOST_FAMILIES and get[0] in GET_BYTES:
            family = self._families[head] = Family(head)
        return family

    def _window(self, family: Family, at: int, frame_end: int) -> RunWindow | None:
        window = family.window
        if window is not None and at < window.window.end:
            return window
        if window is not None:
            self._close(family, window, at)
        if at < family.idle_until:
            return None
        if not family.templates and not self._learn(family, at):
            return None
        family.window = self._open(family, at, frame_end)
        return family.window

    def _close(self, family: Family, window: RunWindow, at: int) -> None:
        self.settle()
        family.window = None
        if window.taken_bytes < _WORTH * window.window.size:
            family.pause_bytes = max(_LEARN_EVERY_BYTES, 2 * family.pause_bytes)
            family.idle_until = at + family.pause_bytes
        else:
            family.pause_bytes = 0
        self._report(at)

    def _learn(self, family: Family, at: int) -> bool:
        """Whether the dict at this place gave a template that was not known."""
        if at < family.learn_from or len(family.templates) == _MOST_TEMPLATES:
            return False
        family.attempts += 1
        if family.attempts > _ATTEMPTS_AT_ONCE:
            family.learn_from = at + _LEARN_EVERY_BYTES
        data = bytes(self._data[at : at + _TEMPLATE_BYTES])
        template = TemplateReader(data, self._memo_value).read()
        if template is None or template in family.templates:
            return False
        family.templates.append(template)
        self.settle()
        family.window = None
        return True

    def _memo_value(self, index: int) -> Any:
        code = self._pool.memo[index]
        return self._pool.objects[code] if code >= 0 else None

    def _open(self, family: Family, at: int, frame_end: int) -> RunWindow:
        self._forget_pages(at)
        window = Window(self._data, at, frame_end, WINDOW_BYTES)
        starts = _candidates(window, family.templates[0], family.head)
        nexts = np.append(starts[1:], window.size)
        left = np.arange(len(starts))
        decoded: list[tuple[Places, Decoded]] = []
        for template in family.templates:
            if not len(left):
                break
            lockstep = Lockstep(window, template, self._pool, self._tails)
            rows = lockstep.decode(starts[left], nexts[left])
            decoded.append((left, rows))
            left = np.delete(left, rows.slots)
        return RunWindow(window, starts, decoded)

    def _forget_pages(self, at: int) -> None:
        """Let the system take back the memory of a mapped file up to here: it is done with."""
        if isinstance(self._data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            pages = at // mmap.PAGESIZE * mmap.PAGESIZE
            if pages:
                self._data.madvise(mmap.MADV_DONTNEED, 0, pages)


def _keep_freed_memory() -> None:
    """Let the C library keep what every window allocates and frees again.

    glibc gives memory back to the system beyond twice the largest mapped block that was freed
    so far (M_TRIM_THRESHOLD); to get it again page by page takes a fifth of the time of reading.
    """
    freed = np.empty(_FREED_BYTES, np.uint8)
    del freed


def _candidates(window: Window, template: Template, head: bytes) -> Numbers:
    """The offsets where dicts of a family may begin (ascending)."""
    memo = template.memo
    free = MEMO_BYTES[memo] - 1 if memo else 0
    get = head[1:] if memo else head
    pattern = bytes([Op.EMPTY_DICT, *([memo] if memo else [])]) + bytes(free) + b"(" + get
    mask = b"\xff" * (2 if memo else 1) + bytes(free) + b"\xff" * (1 + len(get))
    starts = np.flatnonzero(window.padded[: window.size] == Op.EMPTY_DICT)
    for piece in range(0, len(pattern), 8):
        bits, wanted = (
            int.from_bytes(part[piece : piece + 8].ljust(8, b"\0"), "little", signed=True)
            for part in (mask, pattern)
        )
        starts = starts[(window.words[starts + piece] & bits) == wanted]
    return starts
