from __future__ import annotations

from vramscope_analysis.evidence.entry_values import (
    amount_in,
    entries_in,
    entry_in,
    text_in,
    texts_in,
)

ENTRY = {
    "n": 5,
    "minus": -5,
    "text": "a",
    "texts": ["a", 3],
    "one": {"n": 1},
    "many": [{"n": 1}, 7],
}


def test_a_value_is_of_its_type() -> None:
    assert amount_in(ENTRY, "n") == 5
    assert text_in(ENTRY, "text") == "a"
    assert texts_in(ENTRY, "texts") == ["a", "3"]
    assert entry_in(ENTRY, "one") == {"n": 1}
    assert entries_in(ENTRY, "many") == [{"n": 1}]


def test_of_another_type_it_is_empty() -> None:
    assert [amount_in(ENTRY, name) for name in ("minus", "text", "none")] == [0, 0, 0]
    assert (text_in(ENTRY, "n"), texts_in(ENTRY, "text"), entry_in(ENTRY, "many")) == ("", [], {})
    assert entries_in(ENTRY, "one") == []
