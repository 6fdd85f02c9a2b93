"""What grows on the host between two steps: tensors, and graphs of autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.growth import pace  # noqa: E402
from vramscope.growth.host_watch import LEAST_STEPS, HostWatch  # noqa: E402
from vramscope_protocol.commands import Receipt  # noqa: E402
from vramscope_protocol.parameters import ExplainGrowthParams  # noqa: E402

pytestmark = pytest.mark.torch

KIB = 1 << 10


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SHARE", 10**9)


class Log:
    def __init__(self) -> None:
        self.rows: list[Any] = []


def watch(costs: list[int] | None = None) -> HostWatch:
    add: Callable[[int], object] = id if costs is None else costs.append
    # Nothing lies on the device.
    return HostWatch(lambda tensor: None, ExplainGrowthParams(max_ms=5000), 3, add)


def after_all_steps(going: HostWatch) -> Receipt:
    for step in range(going._wanted):
        assert going.poll_on_agent_thread() is None
        assert going.poll(4 + step) is None
    receipt = going.poll_on_agent_thread()
    assert receipt is not None
    return receipt


def test_tensors_that_a_log_keeps() -> None:
    log = Log()
    log.rows.append({"loss": torch.ones(8 * KIB)})
    costs: list[int] = []
    going = watch(costs)
    log.rows += [{"loss": torch.ones(8 * KIB)} for _ in range(4)]
    receipt = after_all_steps(going)
    assert receipt.state == "done"
    group = next(each for each in receipt.result["host_groups"] if each["bytes"])
    assert (group["type"], group["count"], group["bytes"]) == (
        "torch.Tensor (cpu)",
        4,
        4 * 32 * KIB,
    )
    assert group["tensors"] == ["float32[8192] cpu"]
    assert group["holders"][0]["chain"][0] == "Log.rows"
    assert group["holders"][0]["is_growing"]
    assert len(costs) == 2
    assert receipt.result["complete"]
    assert not going.is_on


def test_an_accumulator_with_a_longer_and_longer_history() -> None:
    leaf = torch.ones(2, requires_grad=True)
    total: Any = torch.zeros(2) + leaf
    going = watch()
    for _ in range(5):
        total = total + leaf
    receipt = after_all_steps(going)
    graphs = [each for each in receipt.result["host_groups"] if each["type"] == "autograd graph"]
    assert [(each["bytes"], each["count"]) for each in graphs] == [(None, 5)]
    assert graphs[0]["holders"][0]["chain"][0] == "total"


def test_what_stays_is_not_told() -> None:
    kept = [torch.ones(8 * KIB) for _ in range(4)]
    receipt = after_all_steps(watch())
    assert receipt.result["host_groups"] == []
    assert "Nothing grows" in receipt.message
    assert len(kept) == 4


def test_it_ends_when_it_is_told_to() -> None:
    going = watch()
    going.poll(4)
    receipt = going.cancel("no optimizer step within 30 s")
    assert receipt.state == "failed"
    assert receipt.message.endswith(f"1 of {max(LEAST_STEPS, 4)} steps")
    assert not receipt.result["complete"]
    assert not going.is_on


def test_the_second_search_waits_until_both_are_within_the_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    going = watch()
    left_ns = -1

    def left(pace: Any, now_ns: int) -> int:
        del now_ns
        return int(pace.spent_ns) + left_ns

    monkeypatch.setattr("vramscope.growth.pace.LookPace.left_ns", left)
    assert [going.poll(step) for step in range(20)] == [None] * 20
    assert going.poll_on_agent_thread() is None
    left_ns = 0
    going.poll(21)
    assert going.poll_on_agent_thread() is not None
