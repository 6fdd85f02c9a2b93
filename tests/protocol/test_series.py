"""Well-known series: names as PyTorch has them, units by rule."""

from __future__ import annotations

import pytest

from vramscope_protocol.series import SERIES, unit_of

SUFFIX_UNITS = {"_bytes": "B", "_us": "us", "_ns": "ns", "_mw": "mW", "_percent": "%", "_c": "°C"}


@pytest.mark.parametrize("name", SERIES)
def test_series_is_defined_in_a_sentence(name: str) -> None:
    series = SERIES[name]
    assert series.name == name
    assert series.definition.endswith(".")
    assert series.definition[0].isupper()


@pytest.mark.parametrize("name", SERIES)
def test_unit_follows_from_the_name(name: str) -> None:
    key = name.partition(".all.")[0]
    expected = next((u for suffix, u in SUFFIX_UNITS.items() if key.endswith(suffix)), "")
    assert SERIES[name].unit == unit_of(name) == expected


def test_allocator_series_have_current_and_peak() -> None:
    for key in ("allocated", "requested", "active", "reserved", "inactive_split"):
        assert f"{key}_bytes.all.current" in SERIES
        assert "Highest value" in SERIES[f"{key}_bytes.all.peak"].definition


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("allocated_bytes.small_pool.freed", "B"),
        ("oversize_segments.peak", ""),
        ("max_split_size", ""),
        ("reserved_bytes.all.current@1", "B"),
        ("device.used_bytes@1", "B"),
        ("loss", ""),
    ],
)
def test_unit_of_series_that_are_not_listed(name: str, unit: str) -> None:
    assert name not in SERIES
    assert unit_of(name) == unit


@pytest.mark.torch
def test_allocator_names_are_pytorchs_own() -> None:
    cuda = pytest.importorskip("torch").cuda
    documented = cuda.memory_stats.__doc__
    others = ("device.", "host.", "gc.", "step.", "part.", "category.", "cache.", "agent.")
    own = [name for name in SERIES if not name.startswith(others)]
    for name in set(own) - {"time_ns", "step", "phase"}:
        key = name.partition(".")[0]
        # The documentation says "allocated" where the key is "allocation" (and no such key exists).
        assert f'"{key}' in documented or key == "allocation", name
