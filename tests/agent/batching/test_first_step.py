"""Ranks tell each other, in a real store, whether memory ran out in the first step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from vramscope.batching.consent import Consent
from vramscope.batching.first_step import FirstStep, Heard

pytestmark = pytest.mark.torch

Act = Callable[[FirstStep], Any]


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """What comes of what each rank does, all at the same time."""
    import torch.distributed

    store = torch.distributed.HashStore()
    local = threading.local()
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: local.rank)

    def run(*acts: Act, wait_s: float = 10.0) -> list[Any]:
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: len(acts))
        told: dict[int, Any] = {}

        def of_rank(rank: int, act: Act) -> None:
            local.rank = rank
            told[rank] = act(FirstStep(Consent(lambda: store), "change", wait_s))

        threads = [threading.Thread(target=of_rank, args=each) for each in enumerate(acts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return [told[rank] for rank in sorted(told)]

    return run


def at(*places: str, ran_out_at: str = "") -> Act:
    """Comes to these places one after the other; what it hears at the last."""

    def act(first: FirstStep) -> Heard:
        heard = Heard()
        for place in places:
            heard = first.meet(place, ran_out=place == ran_out_at)
        return heard

    return act


def test_where_all_have_room_nothing_is_heard(ranks: Callable[..., list[Any]]) -> None:
    assert ranks(at("batch 3", "the end"), at("batch 3", "the end")) == [Heard()] * 2


def test_all_hear_who_ran_out(ranks: Callable[..., list[Any]]) -> None:
    out = at("batch 3", "batch 4", ran_out_at="batch 4")
    assert ranks(at("batch 3", "batch 4"), out, out) == [Heard((1, 2))] * 3


def test_one_that_has_left_its_batch_out_alone_is_elsewhere(
    ranks: Callable[..., list[Any]],
) -> None:
    first, second = ranks(at("the end"), at("batch 4", ran_out_at="batch 4"))
    assert first == Heard((1,), "rank 1 was at batch 4, this one at the end")
    assert second == Heard((1,), "rank 0 was at the end, this one at batch 4")


def test_nobody_waits_for_one_that_has_said_that_it_leaves(
    ranks: Callable[..., list[Any]],
) -> None:
    heard, _ = ranks(at("the end"), lambda first: first.leave(ran_out=True))
    assert heard == Heard((1,), "rank 1 does not look at this step any more")


def test_one_that_never_comes_is_waited_for_a_while(ranks: Callable[..., list[Any]]) -> None:
    heard, _ = ranks(at("the end"), lambda _: None, wait_s=0.3)
    assert heard == Heard(why_not="not all ranks came to the end within 0.3 s")


def test_they_go_back_if_all_would_do_the_same(ranks: Callable[..., list[Any]]) -> None:
    def back(at_batch: int, refusal: str = "") -> Act:
        return lambda first: first.reason_against(refusal, {"the batch": at_batch})

    assert ranks(back(4), back(4)) == [None, None]


def test_they_stay_if_one_would_go_back_elsewhere(ranks: Callable[..., list[Any]]) -> None:
    def back(at_batch: int) -> Act:
        return lambda first: first.reason_against("", {"the batch": at_batch})

    assert ranks(back(4), back(6)) == ["ranks differ in the batch: 4 on 0, 6 on 1"] * 2
