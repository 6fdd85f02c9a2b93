"""The pickle opcodes that plain data needs; no other is ever executed."""

from __future__ import annotations

import pickletools
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Op(IntEnum):
    """Opcodes of protocols 2 to 5 that build plain data (``pickletools`` describes each)."""

    PROTO = 0x80
    FRAME = 0x95
    STOP = ord(".")
    MARK = ord("(")
    EMPTY_DICT = ord("}")
    EMPTY_LIST = ord("]")
    EMPTY_TUPLE = ord(")")
    APPEND = ord("a")
    APPENDS = ord("e")
    SETITEM = ord("s")
    SETITEMS = ord("u")
    TUPLE = ord("t")
    TUPLE1 = 0x85
    TUPLE2 = 0x86
    TUPLE3 = 0x87
    MEMOIZE = 0x94
    BINPUT = ord("q")
    LONG_BINPUT = ord("r")
    BINGET = ord("h")
    LONG_BINGET = ord("j")
    BININT = ord("J")
    BININT1 = ord("K")
    BININT2 = ord("M")
    LONG1 = 0x8A
    LONG4 = 0x8B
    BINFLOAT = ord("G")
    SHORT_BINUNICODE = 0x8C
    BINUNICODE = ord("X")
    BINUNICODE8 = 0x8D
    NONE = ord("N")
    NEWTRUE = 0x88
    NEWFALSE = 0x89


_NAMES = {ord(entry.code): entry.name for entry in pickletools.opcodes}

# Opcodes that import or call something while a pickle is read.
_CALLS = {
    "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX",
    "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID",
}  # fmt: skip


def opcode_name(code: int) -> str:
    """The opcode's name as ``pickletools`` prints it, or its number in hexadecimal."""
    return _NAMES.get(code, f"0x{code:02x}")


def is_call(code: int) -> bool:
    """Whether executing the opcode would import or call something."""
    return _NAMES.get(code) in _CALLS


# Bytes of opcodes with their arguments, by opcode; 1 for those without.
_BYTES = np.ones(256, np.int64)
_BYTES[[Op.BININT1, Op.BINGET, Op.BINPUT, Op.LONG1, Op.SHORT_BINUNICODE]] = 2
_BYTES[Op.BININT2] = 3
_BYTES[[Op.BININT, Op.LONG_BINGET, Op.LONG_BINPUT, Op.BINUNICODE]] = 5
# Which bits behind the opcode say how many bytes more there are.
_MORE_BYTES = np.zeros(256, np.int64)
_MORE_BYTES[[Op.LONG1, Op.SHORT_BINUNICODE]] = 0xFF
_MORE_BYTES[Op.BINUNICODE] = 0xFFFFFFFF


def opcode_bytes(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bytes of opcodes, arguments included, that begin words, of those that runs are made of.

    The first byte is the lowest of each word.
    """
    codes = words & 0xFF
    sizes: NDArray[np.int64] = _BYTES[codes] + ((words >> 8) & _MORE_BYTES[codes])
    return sizes
