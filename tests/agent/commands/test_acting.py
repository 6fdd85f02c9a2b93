"""What is wired together reaches what it was given."""

from __future__ import annotations

from tests.support.fake_device import FakeDevice
from vramscope.commands.acting import acting_handlers


def test_nothing_is_asked_for_before_a_command_comes() -> None:
    def never() -> None:
        raise AssertionError("made later, by whoever wires this")

    handlers = acting_handlers(FakeDevice(), never, never)  # type: ignore[arg-type]
    assert set(handlers) >= {"set_allocator_settings", "set_memory_fraction", "set_sampling_rate"}
