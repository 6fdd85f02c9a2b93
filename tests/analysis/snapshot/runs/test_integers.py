from __future__ import annotations

import random

import numpy as np

from vramscope_analysis.snapshot.pickles.pickle_writer import integer_opcodes
from vramscope_analysis.snapshot.runs.integers import read_integers
from vramscope_analysis.snapshot.runs.window import Window


def read(pieces: list[bytes]) -> tuple[list[int], list[int], list[bool]]:
    data = b"".join(pieces)
    at = np.cumsum([0, *map(len, pieces)])[:-1]
    values, ends, fits = read_integers(Window(data, 0, 0, len(data)), at)
    sizes = (ends - at).tolist()
    return values.tolist(), sizes, np.broadcast_to(np.asarray(fits), at.shape).tolist()


def test_integers_of_all_sizes_side_by_side() -> None:
    chance = random.Random(1)
    values = [0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63)]
    values += [chance.getrandbits(chance.randrange(1, 63)) for _ in range(500)]
    values += [-value for value in values[12:]]
    pieces = [integer_opcodes(value) for value in values]

    assert read(pieces) == (values, [len(piece) for piece in pieces], [True] * len(values))


def test_integers_that_are_all_written_alike() -> None:
    for values in ([1, 200], [300, 65535], [-5, 2**30], [2**40, -(2**40)], [2**63 - 1, -(2**63)]):
        pieces = [integer_opcodes(value) for value in values]
        assert read(pieces) == (values, [len(piece) for piece in pieces], [True, True])


def test_what_is_no_integer_of_eight_bytes_does_not_fit() -> None:
    pieces = [b"K\x05", b"\x8a\x09" + bytes(9), b"\x8a\x00", b"N", b"h\x05", b"\x8a\x01\xff"]
    values, sizes, fits = read(pieces)

    assert fits == [True, False, False, False, False, True]
    assert (values[0], values[-1]) == (5, -1)
    assert (sizes[0], sizes[-1]) == (2, 3)
    assert read([b"N", b"N"])[2] == [False, False]


def test_none_at_all() -> None:
    values, ends, _ = read_integers(Window(b"K\x01", 0, 0, 2), np.zeros(0, np.int64))
    assert len(values) == len(ends) == 0
