"""What is held in the midst of a step, as an evaluation that gathers its outputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.growth import ramp_watch  # noqa: E402
from vramscope.growth.ramp_watch import RampWatch  # noqa: E402
from vramscope_protocol.commands import Receipt  # noqa: E402
from vramscope_protocol.parameters import ExplainGrowthParams  # noqa: E402

pytestmark = pytest.mark.torch

KIB = 1 << 10
ABOVE = 10_000


class Device:
    """Every tensor of the host lies on it."""

    def __init__(self) -> None:
        self.allocated_bytes = 0

    def memory_stats(self) -> dict[str, Any]:
        return {"allocated_bytes": {"all": {"current": self.allocated_bytes}}}

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()


@pytest.fixture
def device() -> Iterator[Device]:
    before_s = sys.getswitchinterval()
    yield Device()
    assert sys.getswitchinterval() == before_s


def watch(device: Device, **params: Any) -> RampWatch:
    asked = ExplainGrowthParams(**{"above_bytes": ABOVE, "max_steps": 4, "max_ms": 5000, **params})
    return RampWatch(device, asked, 7, lambda took_ns: None)


def when_high(device: Device, going: RampWatch, allocated_bytes: int = ABOVE) -> Receipt:
    device.allocated_bytes = allocated_bytes
    assert going.poll_on_agent_thread() is None
    receipt = going.poll_on_agent_thread()
    assert receipt is not None
    assert not going.is_on
    return receipt


def test_a_list_that_an_evaluation_fills(device: Device) -> None:
    outs = []
    for _ in range(6):
        outs.append({"x": torch.ones(64 * KIB)})  # stored here
    receipt = when_high(device, watch(device), 2 << 20)
    # The device is the whole process: tests that ran in it before may have left larger ones.
    held = next(each for each in receipt.result["held"] if "outs" in each["holders"][0]["chain"][0])
    assert (held["bytes"], held["count"]) == (6 * 256 * KIB, 6)
    assert held["tensors"] == ["float32[65536]"]
    (holder,) = held["holders"]
    assert (holder["kind"], holder["chain"][0]) == ("local", "outs")
    with open(__file__) as file:
        lines = [line.endswith("# stored here\n") for line in file]
    assert holder["stored_at"]["line"] == lines.index(True) + 1
    assert receipt.result["steps"] == [7]
    assert "outs" in receipt.message
    assert len(outs) == 6


def test_a_state_whose_history_gets_longer(device: Device) -> None:
    weight = torch.ones(4, requires_grad=True)
    h: Any = torch.zeros(4)
    for _ in range(80):
        h = torch.tanh(h * weight)
    receipt = when_high(device, watch(device))
    graphs = [
        each for each in receipt.result["held"] if each["holders"][0]["kind"] == "autograd_graph"
    ]
    assert graphs[0]["holders"][0]["chain"][0] == "h"
    assert "nodes" in graphs[0]["holders"][0]["chain"][-1]


def test_parameters_and_what_is_small_are_not_told(device: Device) -> None:
    model = torch.nn.Linear(512, 512)
    small = [torch.ones(4) for _ in range(4)]
    receipt = when_high(device, watch(device), 1 << 30)
    assert receipt.result["held"] == []
    assert len(small) == 4
    assert model is not None


def test_a_step_that_ends_was_no_evaluation(device: Device) -> None:
    going = watch(device)
    device.allocated_bytes = ABOVE
    for step in range(8, 11):
        assert going.poll_on_agent_thread() is None
        assert going.poll(step) is None
    device.allocated_bytes = ABOVE - 1
    assert going.poll_on_agent_thread() is None
    assert going.poll_on_agent_thread() is None
    assert going.progress == "waited 3 of 4 steps"


def test_it_gives_up_and_can_be_ended(device: Device) -> None:
    going = watch(device)
    for step in range(8, 12):
        going.poll(step)
    receipt = going.poll_on_agent_thread()
    assert receipt is not None
    assert (receipt.state, receipt.result["held"]) == ("done", [])
    assert not going.is_on
    ended = watch(device).cancel("detached")
    assert ended.state == "failed"
    assert ended.result["notes"] == ["detached"]


def test_an_error_lets_the_others_go_on(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> Any:
        raise ValueError("a job of its own kind")

    monkeypatch.setattr(ramp_watch, "held_now", fails)
    going = watch(device)
    device.allocated_bytes = ABOVE
    going.poll_on_agent_thread()
    with pytest.raises(ValueError, match="own kind"):
        going.poll_on_agent_thread()


def test_a_search_that_is_cut_short_says_so(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ramp_watch, "MOST_S", 0.0)
    receipt = when_high(device, watch(device))
    assert not receipt.result["complete"]
    assert "ended after" in receipt.result["notes"][0]
