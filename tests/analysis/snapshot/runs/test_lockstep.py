from __future__ import annotations

import numpy as np
import pytest

from vramscope_analysis.snapshot.pickles.object_pool import IN_A_RUN, ObjectPool
from vramscope_analysis.snapshot.runs.lockstep import Decoded, Lockstep
from vramscope_analysis.snapshot.runs.stack_tails import StackTails
from vramscope_analysis.snapshot.runs.template import Kind, Template, TemplateColumn
from vramscope_analysis.snapshot.runs.window import Window

ACTION = TemplateColumn("action", b"h\x01", Kind.OBJECT)
SIZE = TemplateColumn("size", b"h\x02", Kind.INTEGER)
POOL = TemplateColumn("pool_id", b"h\x03", Kind.PAIR)
FRAMES = TemplateColumn("frames", b"j\x04\x00\x00\x00", Kind.STACK)
GET_FRAMES = b"j\x04\x00\x00\x00"
MEMOIZE = 0x94


class Rows:
    """Dicts side by side, decoded as those of one template."""

    def __init__(
        self, *rows: bytes, columns: tuple[TemplateColumn, ...], memo: int = MEMOIZE
    ) -> None:
        self.pool = ObjectPool()
        self.tails = StackTails()
        self.starts = np.cumsum([0, *map(len, rows)])
        window = Window(b"".join(rows), 0, 0, 1 << 20)
        lockstep = Lockstep(window, Template(memo, columns), self.pool, self.tails)
        self.decoded: Decoded = lockstep.decode(self.starts[:-1], self.starts[1:])

    @property
    def slots(self) -> list[int]:
        return [int(slot) for slot in self.decoded.slots]

    def values(self, key: str) -> list[object]:
        """The values of whole dicts; references to the memo as "memo n"."""
        made: list[object] = []
        for value in self.decoded.columns[key][self.decoded.slots].tolist():
            made.append(self.pool.objects[~value] if value < 0 else f"memo {value}")
        return made


def test_values_and_ends() -> None:
    rows = Rows(
        b"}\x94(h\x01h\x09h\x02K\x05u",
        b"}\x94(h\x01\x8c\x03abc\x94h\x02M\x00\x01u",
        b"}\x94(h\x01j\x00\x01\x00\x00h\x02J\xff\xff\xff\xffu",
        b"}\x94(h\x01Nh\x02\x8a\x01\x05u",
        b"}\x94(h\x01\x89h\x02K\x06u",
        b"}\x94(h\x01X\x02\x00\x00\x00xy\x94h\x02K\x07u",
        b"}\x94(h\x01\x8c\x0da longer texth\x02K\x08u",
        columns=(ACTION, SIZE),
    )
    assert rows.slots == list(range(7))
    assert rows.decoded.ends.tolist() == rows.starts[1:].tolist()
    assert rows.values("action") == [
        "memo 9", "abc", "memo 256", None, False, "xy", "a longer text",
    ]  # fmt: skip
    assert rows.decoded.columns["size"].tolist() == [5, 256, -1, 5, 6, 7, 8]
    assert rows.decoded.counts.tolist() == [1, 2, 1, 1, 1, 2, 1]


def test_what_rows_memoize() -> None:
    rows = Rows(
        b"}\x94(h\x01\x8c\x01a\x94h\x03K\x00K\x01\x86\x94u",
        b"}\x94(h\x01h\x09h\x03K\x02K\x03\x86\x94u",
        columns=(ACTION, POOL),
    )
    dicts, texts, pairs = rows.decoded.points

    assert dicts.rows is None
    assert dicts.codes.tolist() == [IN_A_RUN, IN_A_RUN]
    assert texts.rows is not None
    assert (texts.rows.tolist(), np.asarray(texts.ordinals).tolist()) == ([0], [1])
    assert [rows.pool.objects[code] for code in texts.codes.tolist()] == ["a"]
    assert np.asarray(pairs.ordinals).tolist() == [2, 1]
    assert rows.values("pool_id") == [(0, 1), (2, 3)]
    assert rows.decoded.counts.tolist() == [3, 2]
    written = rows.decoded.written
    assert written["action"] == 1
    assert np.asarray(written["pool_id"]).tolist() == [2, 1]


def test_stacks_end_where_the_next_dict_begins() -> None:
    head = b"}\x94(h\x01h\x09" + GET_FRAMES
    rows = Rows(
        head + b"]\x94(h\x07h\x08eu",
        head + b"h\x05u",
        head + b"]\x94h\x07au",
        head + b"]ue(",
        head + b"]\x94(h\x07h\x08eu",
        columns=(ACTION, FRAMES),
    )
    assert rows.slots == [0, 1, 2, 3, 4]
    # The third is the last of a batch; what ends the batch is not part of it.
    ends = [*rows.starts[1:4].tolist(), int(rows.starts[4]) - 2, int(rows.starts[5])]
    assert rows.decoded.ends.tolist() == ends
    assert rows.decoded.columns["frames"].tolist() == [~0, 5, ~1, ~2, ~0]
    assert rows.tails.references == [[7, 8], [7], []]
    assert rows.decoded.points[-1].are_tails
    assert rows.decoded.counts.tolist() == [2, 1, 2, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        b"}\x94(h\x01h\x09h\x05K\x05u",  # another key
        b"}\x94(h\x01h\x09h\x02Nu",  # another kind of value
        b"}\x94(h\x01h\x09h\x02\x8a\x09" + bytes(9) + b"u",  # too long an integer
        b"}\x94(h\x01h\x09h\x02K\x05N",  # no end
        b"}\x94(h\x01]\x94h\x02K\x05u",
        b"}\x94(h\x01\x8c\x02\xff\xffh\x02K\x05u",  # no UTF-8
        b"}\x94(h\x01X\x00\x00\x00\x01" + bytes(30),  # a huge text
        b"}\x94(h\x01\x8c\x01aq\x00h\x02K\x05u",  # memoized in another way
        b"}\x94(h\x01h\x09h\x02\x8a\xff",
        b"}\x94(",
    ],
)
def test_other_dicts_are_left_out(wrong: bytes) -> None:
    good = b"}\x94(h\x01h\x09h\x02K\x05u"
    rows = Rows(good, wrong, good, columns=(ACTION, SIZE))
    assert rows.slots == [0, 2]


@pytest.mark.parametrize("stack", [b"](h\x07", b"]h\x07", b"](h\x07e", b"](Ne", b"K\x01", b"]a"])
def test_other_stacks_are_left_out(stack: bytes) -> None:
    head = b"}\x94(h\x01h\x09" + GET_FRAMES
    rows = Rows(head + b"]u", head + stack, head + b"]u", columns=(ACTION, FRAMES))
    assert rows.slots == [0, 2]


def test_a_candidate_within_a_dict_does_not_shorten_it() -> None:
    """The bytes of an integer look like the next dict, and the ones before like an end."""
    head = b"}\x94(h\x01h\x09" + GET_FRAMES
    pool = ObjectPool()
    data = head + b"]u" + head + b"]\x94u"
    window = Window(data, 0, 0, 1 << 20)
    lockstep = Lockstep(window, Template(MEMOIZE, (ACTION, FRAMES)), pool, StackTails())
    inside = len(head) - 2
    decoded = lockstep.decode(np.array([0]), np.array([inside]))
    assert decoded.slots.tolist() == []


def test_explicit_memo_indices_are_the_next_ones() -> None:
    def row(first: int, second: int) -> bytes:
        return b"}q" + bytes([first]) + b"(h\x01X\x01\x00\x00\x00aq" + bytes([second]) + b"u"

    rows = Rows(row(40, 41), row(42, 44), row(50, 51), columns=(ACTION,), memo=ord("q"))
    assert rows.slots == [0, 2]
    assert rows.decoded.bases[rows.decoded.slots].tolist() == [40, 50]


def test_long_memo_indices() -> None:
    def row(first: int) -> bytes:
        put = [b"r" + at.to_bytes(4, "little") for at in (first, first + 1)]
        return b"}" + put[0] + b"(h\x01X\x01\x00\x00\x00a" + put[1] + b"u"

    rows = Rows(row(1000), row(70_000), columns=(ACTION,), memo=ord("r"))
    assert rows.slots == [0, 1]
    assert rows.decoded.bases.tolist() == [1000, 70_000]


def test_dicts_that_are_not_memoized() -> None:
    rows = Rows(b"}(h\x01h\x09u", b"}(h\x01\x8c\x01au", columns=(ACTION,), memo=0)
    assert rows.slots == [0, 1]
    assert rows.decoded.counts.tolist() == [0, 0]
    assert rows.decoded.points == []
