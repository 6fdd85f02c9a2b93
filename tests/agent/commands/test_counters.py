"""What the counters say, as an answer to a command."""

from __future__ import annotations

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from vramscope.commands.call import Call
from vramscope.commands.counters import counter_handlers
from vramscope_protocol.commands import Receipt

MIB = 1 << 20


def run(device: FakeDevice, name: str) -> Receipt:
    receipt = counter_handlers(device)[name](Call())
    assert isinstance(receipt, Receipt)
    return receipt


def test_reading_commands_answer_with_text_and_data() -> None:
    device = FakeDevice()
    device.stats = nested_stats(reserved_bytes=20 * MIB)
    assert run(device, "memory_summary").result == "a summary"
    counters = run(device, "stats").result
    assert len(counters) == 122
    assert counters["reserved_bytes.all.current"] == 20 * MIB


def test_reset_peaks_resets() -> None:
    device = FakeDevice()
    receipt = run(device, "reset_peaks")
    assert device.calls == ["reset_peaks"]
    assert receipt.state == "done"
