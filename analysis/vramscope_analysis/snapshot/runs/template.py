"""How the dicts of a run are written: the same keys, each with its kind of value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from vramscope_analysis.snapshot.pickles.opcodes import Op

# Bytes of the opcodes that put what is on top of the stack into the memo, by opcode.
MEMO_BYTES: dict[int, int] = {Op.MEMOIZE: 1, Op.BINPUT: 2, Op.LONG_BINPUT: 5}
# Bytes behind the opcode, without those of LONG1, which says itself how many follow.
INTEGER_BYTES: dict[int, int] = {Op.BININT1: 1, Op.BININT2: 2, Op.BININT: 4}
GET_BYTES: dict[int, int] = {Op.BINGET: 2, Op.LONG_BINGET: 5}
CONSTANTS: dict[int, bool | None] = {Op.NONE: None, Op.NEWTRUE: True, Op.NEWFALSE: False}
# Bytes that say how long a text is.
TEXT_SIZE_BYTES: dict[int, int] = {Op.SHORT_BINUNICODE: 1, Op.BINUNICODE: 4}
MOST_TEXT_BYTES = 255
# Of an integer that fits a column.
MOST_INTEGER_BYTES = 8
MOST_COLUMNS = 64


class Kind(Enum):
    """What the values of one key are written as."""

    INTEGER = "an integer"
    OBJECT = "a reference to the memo, a short text, None, True or False"
    PAIR = "a tuple of two integers"
    STACK = "a reference to the memo or a list of such references, as the last value"


@dataclass(frozen=True)
class TemplateColumn:
    """One key of a template: ``get`` are the bytes that fetch the key from the memo."""

    key: str
    get: bytes
    kind: Kind


@dataclass(frozen=True)
class Template:
    """The keys of one set of dicts. ``memo`` is the opcode that memoizes each dict, 0 for none."""

    memo: int
    columns: tuple[TemplateColumn, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys in their order."""
        return tuple(column.key for column in self.columns)


class TemplateReader:
    """Reads the template off one dict; None where the dict is none that makes up runs."""

    def __init__(self, data: bytes, memo_value: Callable[[int], Any]) -> None:
        """``data`` begins with the dict; ``memo_value`` gives what a memo index stands for."""
        self._data = data
        self._at = 0
        self._memo_value = memo_value

    def read(self) -> Template | None:
        """The template of the dict."""
        try:
            return self._read()
        except (IndexError, LookupError):
            return None

    def _read(self) -> Template | None:
        data = self._data
        self._at = 1
        memo = data[1] if data[1] in MEMO_BYTES else 0
        self._skip_memo()
        if data[self._at] != Op.MARK:
            return None
        self._at += 1
        columns: list[TemplateColumn] = []
        while data[self._at] != Op.SETITEMS:
            if len(columns) == MOST_COLUMNS or (columns and columns[-1].kind is Kind.STACK):
                return None
            start = self._at
            key = self._memo_value(self._get())
            get = data[start : self._at]
            kind = self._value()
            if kind is None or type(key) is not str:
                return None
            columns.append(TemplateColumn(key, get, kind))
        return _template(memo, columns)

    def _skip_memo(self) -> None:
        self._at += MEMO_BYTES.get(self._data[self._at], 0)

    def _get(self) -> int:
        start = self._at
        self._at += GET_BYTES[self._data[start]]
        return int.from_bytes(self._data[start + 1 : self._at], "little")

    def _value(self) -> Kind | None:
        code = self._data[self._at]
        if code in INTEGER_BYTES or code == Op.LONG1:
            return self._integer_or_pair()
        if code in GET_BYTES:
            self._get()
        elif code in CONSTANTS:
            self._at += 1
        elif code in TEXT_SIZE_BYTES:
            start = self._at + 1
            self._at = start + TEXT_SIZE_BYTES[code]
            size = int.from_bytes(self._data[start : self._at], "little")
            if size > MOST_TEXT_BYTES:
                return None
            self._at += size
            self._skip_memo()
        elif code == Op.EMPTY_LIST:
            return self._stack()
        else:
            return None
        return Kind.OBJECT

    def _integer_or_pair(self) -> Kind | None:
        self._integer()
        code = self._data[self._at]
        if code not in INTEGER_BYTES and code != Op.LONG1:
            return Kind.INTEGER
        self._integer()
        if self._data[self._at] != Op.TUPLE2:
            return None
        self._at += 1
        self._skip_memo()
        return Kind.PAIR

    def _integer(self) -> None:
        code = self._data[self._at]
        if code == Op.LONG1:
            self._at += 2 + self._data[self._at + 1]
        else:
            self._at += 1 + INTEGER_BYTES[code]

    def _stack(self) -> Kind | None:
        self._at += 1
        self._skip_memo()
        end = stack_end(self._data, self._at)
        if end is None:
            return None
        self._at = end
        return Kind.STACK


def stack_end(data: bytes, at: int) -> int | None:
    """Where a list ends that is filled with references from here on; None if it is not."""
    try:
        if data[at] in GET_BYTES:
            at += GET_BYTES[data[at]]
            return at + 1 if data[at] == Op.APPEND else None
        if data[at] != Op.MARK:
            return at
        at += 1
        while data[at] in GET_BYTES:
            at += GET_BYTES[data[at]]
    except IndexError:
        return None
    return at + 1 if data[at] == Op.APPENDS else None


def _template(memo: int, columns: list[TemplateColumn]) -> Template | None:
    keys = {column.key for column in columns}
    # Trace entries and blocks: what large snapshots are made of.
    if len(keys) < len(columns) or "size" not in keys or not keys & {"action", "state"}:
        return None
    last = columns[-1]
    if last.key == "frames" and last.kind is Kind.OBJECT:
        columns[-1] = TemplateColumn(last.key, last.get, Kind.STACK)
    elif last.kind is Kind.STACK and last.key != "frames":
        return None
    return Template(memo, tuple(columns))
