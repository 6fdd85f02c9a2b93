"""The bound of a container is read off its words."""

from __future__ import annotations

import pytest

from vramscope_analysis.diagnosis.growth_bound import Bound, bound_of


@pytest.mark.parametrize(
    ("words", "bound"),
    [
        ("deque(maxlen=10000) of 412", Bound(412, 10_000, "maxlen", is_sure=True)),
        ("list(capacity=1000) of 60", Bound(60, 1000, "capacity")),
        ("deque(maxsize=7) of 2", Bound(2, 7, "maxsize")),
        ("list(empty=940) of 1000", Bound(60, 1000, "", is_sure=True)),
        ("lru_cache(maxsize=128) of 6", Bound(6, 128, "maxsize", is_of_calls=True)),
        ("list of 60", None),
        ("list(capacity=) of 60", None),
        (f"list(capacity={'9' * 40}) of 60", None),
    ],
)
def test_words_of_a_container(words: str, bound: Bound | None) -> None:
    assert bound_of(("Agent.replay", words, "['obs']")) == bound


def test_the_parts_of_a_model_are_as_many_as_they_are() -> None:
    pruned = ("model", "Sequential._modules", "dict of 8", "Linear._buffers", "['weight_mask']")
    assert bound_of(pruned) == Bound(0, 8, is_sure=True)
    assert bound_of(("models", "dict of 8", "Net._modules", "['fc']", "Linear.weight")) is None
    added = ("model", "ModuleList._modules", "dict of 8", "Linear._parameters", "['weight']")
    assert bound_of(added) is None
    assert bound_of(("dict of 8",)) is None


def test_without_a_container_there_is_none() -> None:
    assert bound_of(()) is None
