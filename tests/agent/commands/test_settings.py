"""Settings are checked whole, sent whole, and put back whole; receipts say what PyTorch reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from vramscope.collectors.allocator_options import Options, followed, options_text
from vramscope.commands.call import Call
from vramscope.commands.settings import setting_handlers
from vramscope_analysis.allocator import parse_settings, snapshot_settings
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.parameters import AllocatorSettingsParams, MemoryFractionParams

MIB = 1 << 20


class Control:
    """An allocator that sets options back with each text, as PyTorch's does."""

    def __init__(self, text: str = "") -> None:
        self.release = (2, 13)
        self.known: Options = followed({}, text, self.release)
        self.sent: list[str] = []
        self.refuses = ""
        self.reports = True
        self.obstacle: str | None = None
        self.cap: float | None = 1.0

    def why_not(self) -> str | None:
        return self.obstacle

    def reported(self) -> Mapping[str, Any]:
        text = options_text(self.known)
        return snapshot_settings(parse_settings(text), text) if self.reports else {}

    def send(self, text: str) -> None:
        self.sent.append(text)
        if self.refuses and self.refuses in text:
            # What stands before the wrong part is in force.
            self.known = followed(self.known, "expandable_segments:True", self.release)
            raise ValueError("no\nsuch thing")
        self.known = followed(self.known, text, self.release)

    def fraction(self) -> float | None:
        return self.cap

    def set_fraction(self, fraction: float) -> None:
        self.sent.append(f"fraction {fraction}")
        self.cap = fraction


class _Device(FakeDevice):
    def __init__(self, control: Control) -> None:
        super().__init__()
        self.control = control

    def allocator_control(self) -> Control:
        return self.control


class Rig:
    def __init__(self, text: str = "") -> None:
        self.control = Control(text)
        self.device = _Device(self.control)
        self.device.stats = nested_stats(reserved_bytes=600, allocated_bytes=300)
        self.handlers = setting_handlers(self.device, lambda: self.control.known)

    def set(self, settings: str, *, dry_run: bool = False) -> Receipt:
        call = Call(AllocatorSettingsParams(settings), dry_run=dry_run)
        return self._run("set_allocator_settings", call)

    def cap(self, fraction: float, *, dry_run: bool = False) -> Receipt:
        return self._run(
            "set_memory_fraction", Call(MemoryFractionParams(fraction), dry_run=dry_run)
        )

    def _run(self, name: str, call: Call) -> Receipt:
        receipt = self.handlers[name](call)
        assert isinstance(receipt, Receipt)
        return receipt


def test_the_full_set_is_sent_and_the_receipt_has_both_sides() -> None:
    rig = Rig("max_split_size_mb:64,garbage_collection_threshold:0.8")
    receipt = rig.set("expandable_segments:True")
    assert rig.control.sent == [
        "expandable_segments:True,garbage_collection_threshold:0.8,max_split_size_mb:64"
    ]
    assert receipt.state == "done"
    assert receipt.before["expandable_segments"] == "default"
    assert receipt.after["expandable_segments"] == "True"
    assert receipt.before["max_split_size_mb"] == receipt.after["max_split_size_mb"] == "64"
    assert receipt.message == (
        "Set expandable_segments to True (it was default), which holds for new allocations; what "
        "there is stays as it is, and is used on."
    )
    assert receipt.result["sent"] == rig.control.sent[0]
    assert [change["name"] for change in receipt.result["changes"]] == ["expandable_segments"]


def test_a_dry_run_says_what_would_change_and_sends_nothing() -> None:
    rig = Rig()
    receipt = rig.set("garbage_collection_threshold:0.5", dry_run=True)
    assert rig.control.sent == []
    assert receipt.message == (
        "Would set garbage_collection_threshold to 0.5 (it was default), which acts only under a "
        "cap: set_memory_fraction with less than 1."
    )
    assert receipt.after["garbage_collection_threshold"] == "0.5"


@pytest.mark.parametrize(
    "settings",
    ["expandable_segments:True,max_split_size_mb:1", "nosuch:1", "backend:native", "", "a:b:c,[["],
)
def test_one_wrong_part_and_nothing_is_touched(settings: str) -> None:
    rig = Rig("max_split_size_mb:64")
    receipt = rig.set(settings)
    assert receipt.state == "refused"
    assert receipt.message.endswith("Nothing was changed.")
    assert rig.control.sent == []


def test_what_is_set_already_is_not_sent_again() -> None:
    rig = Rig("max_split_size_mb:64")
    receipt = rig.set("max_split_size_mb:064")
    assert rig.control.sent == []
    assert receipt.message == "All of it is set so already. Nothing was changed."


def test_where_pytorch_refuses_all_the_same_everything_is_put_back() -> None:
    rig = Rig("max_split_size_mb:64")
    rig.control.refuses = "garbage"
    receipt = rig.set("expandable_segments:True,garbage_collection_threshold:0.5")
    assert receipt.state == "failed"
    assert receipt.message == (
        "PyTorch refuses these settings: ValueError: no. What was set before was sent again."
    )
    assert rig.control.sent[-1] == "expandable_segments:False,max_split_size_mb:64"
    assert rig.control.known == {"max_split_size_mb": "64", "expandable_segments": "False"}
    assert receipt.after["max_split_size_mb"] == "64"
    assert receipt.after["expandable_segments"] == "default"


def test_where_even_that_fails_the_receipt_says_so() -> None:
    rig = Rig("max_split_size_mb:64")
    rig.control.refuses = ":"
    receipt = rig.set("expandable_segments:True")
    assert "What was set before could not be sent again: ValueError: no." in receipt.message


def test_where_pytorch_reports_another_value_the_receipt_says_so() -> None:
    rig = Rig()
    rig.control.send = lambda text: None  # type: ignore[method-assign]
    receipt = rig.set("expandable_segments:True")
    assert receipt.message.endswith("PyTorch reports expandable_segments:default, though.")


def test_without_a_report_the_texts_have_to_do() -> None:
    rig = Rig("max_split_size_mb:64,backend:native")
    rig.control.reports = False
    receipt = rig.set("expandable_segments:True")
    assert rig.control.sent == ["expandable_segments:True,max_split_size_mb:64"]
    assert receipt.after == {
        "allocator_settings": "expandable_segments:True,max_split_size_mb:64",
        "expandable_segments": "True",
        "max_split_size_mb": "64",
    }


def test_where_there_is_nothing_to_set_the_answer_says_why() -> None:
    rig = Rig()
    rig.control.obstacle = "this job has not used CUDA"
    with pytest.raises(VramscopeError, match="has not used CUDA"):
        rig.set("expandable_segments:True")
    with pytest.raises(VramscopeError, match="has not used CUDA"):
        rig.cap(0.5)


def test_a_cap_has_both_sides_in_the_receipt() -> None:
    rig = Rig()  # of 1000 bytes, 600 are reserved and 300 allocated
    receipt = rig.cap(0.75)
    assert rig.control.sent == ["fraction 0.75"]
    assert (receipt.before["memory_fraction"], receipt.before["limit_bytes"]) == (1.0, 1000)
    assert (receipt.after["memory_fraction"], receipt.after["limit_bytes"]) == (0.75, 750)
    assert receipt.message == (
        "Capped at 0.75 of the device (it was 1): 750 B for PyTorch's segments."
    )


def test_a_cap_below_what_is_reserved_says_what_happens_then() -> None:
    rig = Rig()
    dry = rig.cap(0.5, dry_run=True)
    assert rig.control.sent == []
    assert dry.message.startswith("Would cap at 0.5 of the device (it was 1): 500 B")
    assert "600 B are reserved, and nothing is freed now" in dry.message
    assert dry.after["limit_bytes"] == 500
    real = rig.cap(0.5)
    assert real.state == "done"
    assert "600 B are reserved" in real.message


def test_a_cap_below_what_is_allocated_would_end_the_job() -> None:
    rig = Rig()
    for dry_run in (True, False):
        receipt = rig.cap(0.2, dry_run=dry_run)
        assert receipt.state == "refused"
        assert "200 B, and 300 B are allocated" in receipt.message
    assert rig.control.sent == []


def test_a_release_that_cannot_be_asked_for_its_cap_says_so() -> None:
    rig = Rig()
    rig.control.fraction = lambda: None  # type: ignore[method-assign]
    receipt = rig.cap(0.9)
    assert receipt.state == "done"
    assert receipt.after["memory_fraction"] is None
    assert receipt.message.endswith("cannot be asked what its cap is.")
