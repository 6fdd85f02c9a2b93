from __future__ import annotations

import pytest

from vramscope_protocol.errors import RATE_LIMITED
from vramscope_server.auth.throttle import RateLimited, Throttle


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_passes_and_the_next_use_has_to_wait() -> None:
    clock = Clock()
    throttle = Throttle("tries", 2, 0.5, 8, clock)
    for _ in range(2):
        throttle.check("a")
        throttle.use("a")

    with pytest.raises(RateLimited) as refused:
        throttle.check("a")

    assert refused.value.code == RATE_LIMITED
    assert refused.value.wait_s == pytest.approx(2.0)
    assert "tries from a" in refused.value.message


def test_uses_come_back_with_time_and_not_above_the_burst() -> None:
    clock = Clock()
    throttle = Throttle("tries", 1, 0.5, 8, clock)
    throttle.use("a")
    clock.now_s += 2
    throttle.check("a")
    clock.now_s += 1000
    throttle.use("a")
    with pytest.raises(RateLimited):
        throttle.check("a")


def test_callers_do_not_slow_each_other_down() -> None:
    throttle = Throttle("tries", 1, 0.1, 8, Clock())
    throttle.use("a")
    throttle.check("b")


def test_the_caller_that_was_idle_longest_is_forgotten_first() -> None:
    throttle = Throttle("tries", 1, 0.1, 2, Clock())
    for caller in ("a", "b", "c"):
        throttle.use(caller)
    throttle.check("a")
    with pytest.raises(RateLimited):
        throttle.check("c")
