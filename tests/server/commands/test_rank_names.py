from __future__ import annotations

import pytest

from vramscope_server.commands.rank_names import capitalised, rank_names


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([3], "rank 3"),
        ([5, 3], "ranks 3 and 5"),
        ([1, 2, 3, 4], "ranks 1, 2, 3 and 4"),
        (range(64), "ranks 0, 1, 2 and 61 more"),
    ],
)
def test_ranks_in_words(ranks: list[int], words: str) -> None:
    assert rank_names(ranks) == words


def test_a_sentence_begins_large_and_ends() -> None:
    assert capitalised("rank 3 refused: no ") == "Rank 3 refused: no."
    assert capitalised("Nothing to do!") == "Nothing to do!"
    assert capitalised("") == ""
