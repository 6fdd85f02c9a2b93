"""The pickle opcodes that plain data needs; no other is ever executed."""

from __future__ import annotations

import pickletools
from enum import IntEnum


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


# Bytes of opcodes with their arguments; 1 for those without.
_BYTES: dict[int, int] = {
    Op.BININT1: 2, Op.BININT2: 3, Op.BININT: 5, Op.BINGET: 2, Op.LONG_BINGET: 5, Op.BINPUT: 2,
    Op.LONG_BINPUT: 5,
}  # fmt: skip


def opcode_bytes(data: bytes, at: int) -> int:
    """The bytes of the opcode at this place with its argument, for those that runs are made of."""
    code = data[at]
    if code in (Op.LONG1, Op.SHORT_BINUNICODE):
        return 2 + data[at + 1]
    return _BYTES.get(code, 1)
