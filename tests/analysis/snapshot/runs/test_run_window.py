from __future__ import annotations

import struct

import numpy as np

from vramscope_analysis.snapshot.pickles.object_pool import ObjectPool
from vramscope_analysis.snapshot.runs.lockstep import Lockstep
from vramscope_analysis.snapshot.runs.run_window import RunWindow
from vramscope_analysis.snapshot.runs.stack_tails import StackTails
from vramscope_analysis.snapshot.runs.template import Kind, Template, TemplateColumn
from vramscope_analysis.snapshot.runs.window import Window

ACTION = TemplateColumn("action", b"h\x01", Kind.OBJECT)
SIZE = TemplateColumn("size", b"h\x02", Kind.INTEGER)
ONE = b"}\x94(h\x01h\x09u"
TWO = b"}\x94(h\x01\x8c\x01a\x94h\x02K\x05u"


def opened(data: bytes, *, start: int = 0, frame_end: int = 0, memo: int = 0x94) -> RunWindow:
    window = Window(data, start, frame_end, 1 << 20)
    starts = np.array([at for at, byte in enumerate(window.bytes) if byte == ord("}")])
    nexts = np.append(starts[1:], window.size)
    left = np.arange(len(starts))
    decoded = []
    for columns in ((ACTION,), (ACTION, SIZE)):
        lockstep = Lockstep(window, Template(memo, columns), ObjectPool(), StackTails())
        rows = lockstep.decode(starts[left], nexts[left])
        decoded.append((left, rows))
        left = np.delete(left, rows.slots)
    return RunWindow(window, starts, decoded)


def test_rows_of_several_templates_follow_each_other() -> None:
    window = opened(ONE + TWO + TWO + b"e(" + ONE + b"N" + ONE)

    assert window.part.tolist() == [0, 1, 1, 0, 0]
    assert window.slot.tolist() == [0, 0, 1, 3, 4]
    assert [window.stretch_end(row) for row in range(5)] == [4, 4, 4, 4, 5]
    assert window.memoized(0, 4) == 6
    assert window.memoized(1, 2) == 2
    assert window.memo_before.tolist() == [0, 1, 3, 5, 6]


def test_rows_are_found_by_their_place() -> None:
    window = opened(ONE + b"}N" + ONE)
    assert window.find(0) == 0
    assert window.find(1) is None
    assert window.find(len(ONE)) is None
    assert window.find(len(ONE) + 2) == 2
    assert window.find(1000) is None


def test_what_is_taken_is_counted() -> None:
    window = opened(ONE + TWO + TWO)
    first = window.accept(0, 1, 100)
    second = window.accept(1, 3, 101)

    assert (first.start, first.count) == (0, 1)
    assert (second.start, second.count) == (1, 2)
    assert second.block is first.block
    assert window.accepted == [(0, 1, 100), (1, 3, 101)]
    assert window.taken_bytes == window.end_offset(3) == len(ONE + TWO + TWO)
    window.settled()
    assert window.accepted == []
    assert window.accept(0, 1, 200).block is not first.block


def test_other_bytes_between_dicts_end_a_stretch() -> None:
    for between in (b"N", b"e", b"ee", b"((", b"(e", b"e(N"):
        assert opened(ONE + between + ONE).stretch_end(0) == 1


def test_explicit_memo_indices_go_on_from_row_to_row() -> None:
    def row(index: int) -> bytes:
        return b"}q" + bytes([index]) + b"(h\x01h\x09u"

    window = opened(row(5) + row(6) + row(8) + row(9), memo=ord("q"))
    assert [window.stretch_end(row) for row in range(4)] == [2, 2, 4, 4]
    assert [window.base(row) for row in range(4)] == [5, 6, 8, 9]
    assert opened(ONE).base(0) == -1


def frames(*payloads: bytes) -> bytes:
    return b"".join(b"\x95" + struct.pack("<Q", len(part)) + part for part in payloads)


def test_a_frame_ends_between_opcodes_only() -> None:
    # Behind each opcode of that dict.
    between = {0, 1, 2, 3, 5, 8, 9, 11, 13, 14}
    assert len(TWO) == 14
    for cut in range(len(TWO) + 1):
        data = frames(ONE + TWO[:cut], TWO[cut:] + ONE)
        window = opened(data, start=9, frame_end=9 + len(ONE) + cut)
        assert window.part.tolist() == ([0, 1, 0] if cut in between else [0, -1, 0]), cut


def test_a_place_within_a_frame_header_is_no_dict() -> None:
    data = frames(ONE + ONE, ONE + ONE)
    end = 9 + 2 * len(ONE)
    window = opened(data, start=9, frame_end=end)
    assert window.find(end + 9) == 2
    # Where the header would begin a dict if it were none.
    assert window.find(end + 9 + len(ONE) - 9) is None
