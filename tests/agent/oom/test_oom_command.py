from __future__ import annotations

import pytest

from vramscope.commands.call import Call
from vramscope.oom.oom_command import PAUSE_S, oom_handlers
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.parameters import OomReportParams


def test_it_names_the_report_and_what_it_is_linked_to() -> None:
    asked: list[str] = []

    def report(linked_to: str) -> str:
        asked.append(linked_to)
        return "r1"

    handler = oom_handlers(report, lambda: 100.0)["oom_report"]
    receipt = handler(Call(OomReportParams("r0")))
    assert isinstance(receipt, Receipt)
    assert receipt.result == {"report": "r1"}
    assert asked == ["r0"]


def test_it_is_not_made_again_and_again() -> None:
    now = [0.0]
    handler = oom_handlers(lambda linked_to: "r1", lambda: now[0])["oom_report"]
    handler(Call(OomReportParams()))
    now[0] = PAUSE_S - 0.1
    with pytest.raises(VramscopeError):
        handler(Call(OomReportParams()))
    now[0] = PAUSE_S
    assert handler(Call(OomReportParams()))
