from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

from tests.support.made_snapshots import assert_identical
from vramscope_analysis.snapshot import SnapshotError
from vramscope_analysis.snapshot.pickles.pickle_writer import (
    PickleWriter,
    integer_opcodes,
    scalar_opcodes,
    text_opcodes,
)


def written(value: Any) -> bytes:
    file = io.BytesIO()
    out = PickleWriter(file)
    out.value(value)
    out.finish()
    return file.getvalue()


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0.5, "", "é", "x" * 300, "\ud800", [], {}, (), (1,), (1, 2), (1, 2, 3),
        (1, 2, 3, 4), [1] * 2500, {"a": {5: [()]}}, [{"a": "a"}, {"a": "a"}], [None] * 1000,
    ],
)  # fmt: skip
def test_values(value: Any) -> None:
    assert_identical(pickle.loads(written(value)), value)


@pytest.mark.parametrize("bits", [0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 127, 3000])
def test_integers_are_as_short_as_pickles_own(bits: int) -> None:
    for value in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1):
        opcodes = integer_opcodes(value)
        assert pickle.loads(b"\x80\x04" + opcodes + b".") == value
        assert len(opcodes) <= len(pickle.dumps(value, 2)) - 3


def test_what_is_written_twice_is_fetched() -> None:
    inner = [1, "a long enough text"]
    once, twice = written([inner]), written([inner, inner, "a long enough text"])
    assert len(twice) == len(once) + 4
    got = pickle.loads(twice)
    assert got[0] is got[1]


def test_a_value_can_be_given_again() -> None:
    file = io.BytesIO()
    out = PickleWriter(file)
    out.write(b"](")
    for value in ("text", [1], 2.5, None, 7):
        out.write(out.value_again(value))
    out.write(b"e")
    out.finish()
    assert pickle.loads(file.getvalue()) == ["text", "text", [1], [1], 2.5, 2.5, None, None, 7, 7]
    assert out.fetched_text("text") is not None
    assert out.fetched_text("other") is None


def test_many_memo_entries() -> None:
    texts = [f"text {at}" for at in range(400)]
    assert pickle.loads(written(texts * 2)) == texts * 2


def test_other_values_are_refused() -> None:
    with pytest.raises(SnapshotError, match="expected plain data, got a set"):
        scalar_opcodes({1})
    assert pickle.loads(b"\x80\x04" + text_opcodes("\ud800") + b".") == "\ud800"
