"""The parameters of commands are bounded, whoever asks."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope_protocol.command_table import COMMANDS, check_params
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.parameters import BatchSizeParams, GcThresholdsParams, PauseParams


def test_defaults() -> None:
    assert check_params(COMMANDS["set_batch_size"], {"batch_size": 4}, dry_run=True) == (
        BatchSizeParams(4, None, change_global_batch=False)
    )
    assert check_params(COMMANDS["set_gc_thresholds"], {}, dry_run=False) == (
        GcThresholdsParams([], None)
    )
    assert check_params(COMMANDS["pause"], {}, dry_run=False) == PauseParams(60.0)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("set_batch_size", {}),
        ("set_batch_size", {"batch_size": 0}),
        ("set_batch_size", {"batch_size": 2.5}),
        ("set_batch_size", {"batch_size": 4, "accumulation": 0}),
        ("set_accumulation", {"accumulation": -1}),
        ("set_allocator_settings", {"settings": "x" * 1001}),
        ("set_memory_fraction", {"fraction": 0}),
        ("set_memory_fraction", {"fraction": 1.01}),
        ("set_gc_thresholds", {"thresholds": [1, 2, 3, 4]}),
        ("set_gc_thresholds", {"thresholds": [-1]}),
        ("set_sampling_rate", {"rate_hz": 0}),
        ("set_sampling_rate", {"rate_hz": 1000}),
        ("pause", {"max_s": 301}),
        ("stop", {"now": True}),
    ],
)
def test_out_of_bounds(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(VramscopeError, match=f"parameters of {name}"):
        check_params(COMMANDS[name], params, dry_run=False)
