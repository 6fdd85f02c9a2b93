"""What is wired together reaches what it was given, when a command comes and not before."""

from __future__ import annotations

from typing import Any

from tests.support.fake_device import FakeDevice
from vramscope.commands.acting import acting_handlers
from vramscope.commands.call import Call
from vramscope_protocol.parameters import SamplingRateParams


class Sampler:
    rates_hz = (10.0, 10.0)

    def set_rate_hz(self, rate_hz: float) -> None:
        self.rates_hz = (rate_hz, rate_hz)


def test_the_parts_are_asked_for_when_a_command_comes() -> None:
    parts: list[Any] = []
    handlers = acting_handlers(FakeDevice(), lambda: parts[0])
    assert {"empty_cache", "set_allocator_settings", "set_memory_fraction"} < set(handlers)
    sampler = Sampler()
    parts.append((None, sampler, None))
    handlers["set_sampling_rate"](Call(SamplingRateParams(4)))
    assert sampler.rates_hz == (4, 4)
