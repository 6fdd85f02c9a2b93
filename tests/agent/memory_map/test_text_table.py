"""Texts travel once, within bounds."""

from __future__ import annotations

from vramscope.memory_map.text_table import (
    MAX_NEW_LENGTH,
    MAX_TEXT_LENGTH,
    MAX_TEXTS,
    NO_TEXT,
    TextTable,
)


def test_a_text_travels_once() -> None:
    table = TextTable()
    assert [table.number(text) for text in ("a", "b", "a", "")] == [0, 1, 0, NO_TEXT]
    assert table.take_new() == (0, ["a", "b"])
    assert [table.number(text) for text in ("b", "c")] == [1, 2]
    assert table.take_new() == (2, ["c"])
    assert table.take_new() == (3, [])


def test_what_does_not_fit_into_this_frame_waits_for_the_next() -> None:
    table = TextTable()
    long = MAX_TEXT_LENGTH * "x"
    fit = MAX_NEW_LENGTH // MAX_TEXT_LENGTH
    numbers = [table.number(f"{i:04}{long}") for i in range(fit + 1)]
    assert numbers == [*range(fit), None]
    assert len(table.take_new()[1]) == fit
    assert table.number(f"{fit:04}{long}") == fit


def test_long_texts_are_cut_and_a_full_table_takes_no_more() -> None:
    table = TextTable()
    table.number("y" * (MAX_TEXT_LENGTH + 1))
    assert table.take_new()[1] == ["y" * MAX_TEXT_LENGTH]
    for i in range(MAX_TEXTS):
        table.number(str(i))
    assert table.is_full
    assert table.number("new") == NO_TEXT
    assert table.number("7") == 8
