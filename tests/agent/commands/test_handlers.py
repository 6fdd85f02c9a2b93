"""The table: every command by its name, and what all receipts have in common."""

from __future__ import annotations

import pytest

from tests.support.fake_device import FakeDevice
from vramscope.commands.call import Call
from vramscope.commands.handlers import CommandHandlers
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import VramscopeError


def test_it_runs_only_what_is_declared() -> None:
    assert set(CommandHandlers(FakeDevice()).names) <= set(COMMANDS)


def test_commands_of_other_parts_are_in_the_same_table() -> None:
    calls: list[Call] = []

    def more(call: Call) -> Receipt:
        calls.append(call)
        return Receipt("done")

    handlers = CommandHandlers(FakeDevice(), {"more": more})
    call = Call({"x": 1}, dry_run=True, step=7)
    receipt = handlers.run("more", call)
    assert "more" in handlers.names
    assert calls == [call]
    assert isinstance(receipt, Receipt)
    assert receipt.dry_run


def test_a_receipt_says_how_long_it_took() -> None:
    receipt = CommandHandlers(FakeDevice()).run("empty_cache", Call())
    assert isinstance(receipt, Receipt)
    assert receipt.took_s is not None
    assert receipt.took_s >= 0
    assert not receipt.dry_run


def test_the_device_says_whether_it_is_busy() -> None:
    device = FakeDevice()
    device.reason = "a CUDA graph is being captured"
    assert CommandHandlers(device).busy_reason() == "a CUDA graph is being captured"


@pytest.mark.parametrize(
    "name", ["empty_cache", "empty_cache+gc_collect", "memory_summary", "stats", "reset_peaks"]
)
def test_without_counters_the_answer_says_why(name: str) -> None:
    device = FakeDevice()
    device.stats = None
    with pytest.raises(VramscopeError, match="this process has not used the device"):
        CommandHandlers(device).run(name, Call())
    assert device.calls == []
