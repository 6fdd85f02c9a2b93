from __future__ import annotations

from vramscope_analysis.snapshot.runs.stack_tails import MALFORMED, StackTails


def test_equal_bytes_have_one_number() -> None:
    tails = StackTails()
    numbers = tails.numbers(
        [b"(h\x05h\x06e", b"", b"(h\x05h\x06e", b"h\x07a", b"(j\x00\x01\x00\x00e"]
    )

    assert numbers == [0, 1, 0, 2, 3]
    assert tails.references == [[5, 6], [], [7], [256]]
    assert tails.highest[:4].tolist() == [6, -1, 7, 256]
    assert tails.codes[:4].tolist() == [-1] * 4
    assert tails.references_read == 4


def test_other_bytes_have_none() -> None:
    tails = StackTails()
    wrong = [b"(h\x05", b"(h\x05e ", b"h\x05", b"N", b"(Ne", b"(h\x05ee", b"(j\x05\x00e", b"(h"]
    assert tails.numbers(wrong) == [MALFORMED] * len(wrong)
    assert tails.references == []


def test_room_for_many() -> None:
    tails = StackTails()
    numbers = tails.numbers([b"(j" + at.to_bytes(4, "little") + b"e" for at in range(5000)])

    assert numbers == list(range(5000))
    assert tails.highest[4999] == 4999
    assert tails.codes[4999] == -1
