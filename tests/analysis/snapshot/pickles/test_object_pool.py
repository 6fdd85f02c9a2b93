from __future__ import annotations

from vramscope_analysis.snapshot.pickles.object_pool import ObjectPool


def test_equal_texts_pairs_and_constants_have_one_number() -> None:
    pool = ObjectPool()
    numbers = [pool.text(b"a"), pool.pair(0, 1), pool.constant(None), pool.constant(False)]
    again = [pool.text(b"a"), pool.pair(0, 1), pool.constant(None), pool.constant(False)]

    assert numbers == again == [0, 1, 2, 3]
    assert pool.objects == ["a", (0, 1), None, False]


def test_what_is_added_is_new_each_time() -> None:
    pool = ObjectPool()
    assert [pool.add("x"), pool.add("x")] == [0, 1]


def test_texts_that_are_none_have_no_number() -> None:
    pool = ObjectPool()
    assert pool.text(b"\xff") is None
    assert pool.text(b"\xff") is None
    # As pickle writes half a surrogate pair.
    number = pool.text(b"\xed\xa0\x80")
    assert number is not None
    assert pool.objects[number] == "\ud800"
