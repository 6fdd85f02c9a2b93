"""What a job lets a server do: what was asked for, else what fits to where the server is."""

from __future__ import annotations

import pytest

from vramscope.allowance import ELSEWHERE, REACHABLE, Allowance
from vramscope.config import load_config
from vramscope_protocol.messages import Welcome

HERE, TUNNEL, THERE = None, "http://127.0.0.1:8470", "http://gpu-box:8470"


def welcome(*, reachable: bool) -> Welcome:
    return Welcome(1, 0, reachable=reachable)


@pytest.mark.parametrize("url", [HERE, TUNNEL])
def test_a_server_that_others_can_reach_may_only_observe(url: str | None) -> None:
    allowance = Allowance(load_config({}, url=url))
    assert (allowance.allow, allowance.why) == ("control", "")
    allowance.take(welcome(reachable=True))
    assert (allowance.allow, allowance.why) == ("observe", REACHABLE)
    assert "--allow control" in allowance.why


def test_the_next_server_is_judged_by_itself() -> None:
    allowance = Allowance(load_config({}))
    allowance.take(welcome(reachable=True))
    allowance.take(welcome(reachable=False))
    assert (allowance.allow, allowance.why) == ("control", "")


@pytest.mark.parametrize("reachable", [True, False])
@pytest.mark.parametrize("url", [HERE, TUNNEL, THERE])
def test_what_was_asked_for_holds_wherever_the_server_is(url: str | None, reachable: bool) -> None:
    for asked, allow in (("control", "control"), ("observe", "observe"), ("stats", "control")):
        allowance = Allowance(load_config({}, url=url, allow=asked))
        allowance.take(welcome(reachable=reachable))
        assert (allowance.allow, allowance.why) == (allow, "")


def test_a_server_on_another_machine_says_in_vain_that_nobody_can_reach_it() -> None:
    allowance = Allowance(load_config({}, url=THERE))
    allowance.take(welcome(reachable=False))
    assert (allowance.allow, allowance.why) == ("observe", ELSEWHERE)
