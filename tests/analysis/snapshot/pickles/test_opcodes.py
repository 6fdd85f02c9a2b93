from __future__ import annotations

import pickletools

import numpy as np

from vramscope_analysis.snapshot.pickles.opcodes import Op, is_call, opcode_bytes, opcode_name


def test_codes_are_those_of_pickletools() -> None:
    codes = {entry.name: ord(entry.code) for entry in pickletools.opcodes}
    assert {op.name: int(op) for op in Op} == {op.name: codes[op.name] for op in Op}


def test_no_opcode_that_is_known_calls_anything() -> None:
    assert not any(is_call(op) for op in Op)
    called = {opcode_name(code) for code in range(256) if is_call(code)}
    assert {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ"} <= called


def test_names() -> None:
    assert opcode_name(ord("}")) == "EMPTY_DICT"
    assert opcode_name(0xFF) == "0xff"


def test_bytes_of_opcodes() -> None:
    pieces = [
        b"K\x01", b"M\x01\x02", b"J\x01\x02\x03\x04", b"\x8a\x03abc", b"\x8c\x02ab", b"h\x01",
        b"j\x01\x02\x03\x04", b"q\x01", b"r\x01\x02\x03\x04", b"X\x02\x01\x00\x00", b"\x94", b"}",
        b"(", b"u", b"e", b"]",
    ]  # fmt: skip
    words = np.array(
        [int.from_bytes(piece.ljust(8, b"\xff")[:8], "little") for piece in pieces], "<u8"
    )
    expected = [len(piece) for piece in pieces]
    # A long text: five bytes and 258 more.
    expected[9] = 5 + 258
    assert opcode_bytes(words.astype("<i8")).tolist() == expected
