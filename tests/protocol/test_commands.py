"""States and receipts of commands."""

from __future__ import annotations

from typing import get_args

import msgspec

from vramscope_protocol.commands import FINAL_STATES, CommandState, Receipt


def test_final_states_are_states() -> None:
    assert set(get_args(CommandState)) - FINAL_STATES == {"queued", "prepared", "running"}


def test_receipt_sends_only_what_it_says() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Receipt("expired", message="none came"))) == {
        "state": "expired",
        "message": "none came",
        "before": {},
        "after": {},
    }
