"""Ranks compare what they would change in a real store, and act on the same answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from vramscope.batching import consent
from vramscope.batching.consent import Consent, Shown

pytestmark = pytest.mark.torch


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Shown | None]], list[str | None]]:
    """What each rank is told, given what each shows; ``None`` is a rank that never answers."""
    import torch.distributed

    store = torch.distributed.HashStore()
    local = threading.local()
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: local.rank)

    def run(shown: list[Shown | None]) -> list[str | None]:
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: len(shown))
        told: dict[int, str | None] = {}

        def of_rank(rank: int, mine: Shown) -> None:
            local.rank = rank
            limit_s = 10.0 if None not in shown else 0.3
            told[rank] = Consent(lambda: store).reason_against("key", mine, limit_s)

        threads = [
            threading.Thread(target=of_rank, args=(rank, mine))
            for rank, mine in enumerate(shown)
            if mine is not None
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return [told[rank] for rank in sorted(told)]

    return run


def test_alike_they_do_it(ask: Callable[[list[Any]], list[str | None]]) -> None:
    assert ask([{"refusal": "", "at": 4}] * 3) == [None] * 3


def test_what_one_refuses_none_does_and_all_say_the_same(
    ask: Callable[[list[Any]], list[str | None]],
) -> None:
    told = ask([{"refusal": "", "at": 4}, {"refusal": "two loaders"}])
    assert told == ["rank 1: two loaders"] * 2


def test_a_difference_is_named(ask: Callable[[list[Any]], list[str | None]]) -> None:
    told = ask([{"refusal": "", "the batch": 4}, {"refusal": "", "the batch": 6}])
    assert told == ["ranks differ in the batch: 4 on 0, 6 on 1"] * 2


def test_a_rank_that_never_answers_stops_it_on_all(
    ask: Callable[[list[Any]], list[str | None]],
) -> None:
    told = ask([{"refusal": ""}, {"refusal": ""}, None])
    assert told == ["not all 3 ranks have said within 0.3 s what they would change"] * 2
    assert consent.WAIT_S < 60
