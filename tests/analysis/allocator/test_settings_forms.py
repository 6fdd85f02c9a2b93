from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope_analysis.allocator import (
    AllocatorSettings,
    parse_settings,
    settings_dict,
    settings_from_snapshot,
    settings_text,
    snapshot_settings,
)
from vramscope_analysis.allocator.settings import UNLIMITED

MIB = 1 << 20
DIVISIONS = st.one_of(
    st.sampled_from([0, 1, 8, 64]).map(lambda value: (value,) * 16),
    st.tuples(*[st.sampled_from([0, 1, 2, 16])] * 16),
)
SETTINGS = st.builds(
    AllocatorSettings,
    roundup_power2_divisions=DIVISIONS,
    max_split_size_bytes=st.one_of(
        st.just(UNLIMITED), st.integers(200, 5000).map(lambda mib: mib * MIB)
    ),
    max_non_split_rounding_bytes=st.integers(200, 500).map(lambda mib: mib * MIB),
    garbage_collection_threshold=st.sampled_from([0.0, 0.3, 0.875]),
    large_segment_bytes=st.integers(11, 200).map(lambda mib: mib * MIB),
    expandable_segments=st.booleans(),
    per_process_memory_fraction=st.sampled_from([0.0, 0.25, 1.0]),
    throw_on_cudamalloc_oom=st.booleans(),
)


@given(SETTINGS)
def test_the_text_gives_the_settings_back(settings: AllocatorSettings) -> None:
    assert parse_settings(settings_text(settings)) == settings
    divisions = AllocatorSettings(roundup_power2_divisions=settings.roundup_power2_divisions)
    assert parse_settings(settings_text(divisions), version=(2, 4)) == divisions
    assert settings_from_snapshot(snapshot_settings(settings)) == settings


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (AllocatorSettings(), ""),
        (AllocatorSettings(expandable_segments=True), "expandable_segments:True"),
        (
            AllocatorSettings(max_split_size_bytes=128 * MIB, garbage_collection_threshold=0.6),
            "max_split_size_mb:128,garbage_collection_threshold:0.6",
        ),
        (
            AllocatorSettings(roundup_power2_divisions=(8,) * 16),
            "roundup_power2_divisions:8",
        ),
        (
            AllocatorSettings(roundup_power2_divisions=(1,) * 9 + (2, 2) + (4,) * 5),
            "roundup_power2_divisions:[256:1,512:2,1024:2,2048:4,>:4]",
        ),
        (AllocatorSettings(large_segment_bytes=64 * MIB), "large_segment_size_mb:64"),
    ],
)
def test_only_what_is_set_is_written(settings: AllocatorSettings, text: str) -> None:
    assert settings_text(settings) == text


def test_a_size_that_no_text_gives_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a multiple of 1 MiB, got 31457281 bytes"):
        settings_text(AllocatorSettings(max_split_size_bytes=30 * MIB + 1))


def test_options_by_name_can_be_written_as_json() -> None:
    by_name = settings_dict(AllocatorSettings(max_split_size_bytes=128 * MIB))

    assert json.loads(json.dumps(by_name)) == by_name
    assert by_name["max_split_size_mb"] == 128
    assert by_name["max_non_split_rounding_mb"] == 20
    assert by_name["roundup_power2_divisions"]["32768"] == 0
    assert settings_dict(AllocatorSettings())["max_split_size_mb"] is None


def test_what_a_snapshot_has_no_entry_for_comes_from_the_text() -> None:
    recorded = {
        "PYTORCH_CUDA_ALLOC_CONF": "large_segment_size_mb:64,max_split_size_mb:100,later_option:1",
        "max_split_size": 200 * MIB,
        "garbage_collection_threshold": 0.6,
        "expandable_segments": True,
        "roundup_power2_divisions": {"2": 4, "1": 8},
        "pinned_num_register_threads": 1,
    }

    assert settings_from_snapshot(recorded) == AllocatorSettings(
        large_segment_bytes=64 * MIB,
        max_split_size_bytes=200 * MIB,
        garbage_collection_threshold=0.6,
        expandable_segments=True,
        roundup_power2_divisions=(8, 4) + (0,) * 14,
    )
    assert settings_from_snapshot({}) == AllocatorSettings()
    assert settings_from_snapshot({"max_split_size": -1}) == AllocatorSettings()


@pytest.mark.parametrize(
    "recorded",
    [
        {"max_split_size": "many"},
        {"garbage_collection_threshold": [0.5]},
        {"garbage_collection_threshold": 1.5},
        {"roundup_power2_divisions": [8, 8]},
        {"roundup_power2_divisions": {"3": 8}},
        {"roundup_power2_divisions": {"65536": 8}},
        {"roundup_power2_divisions": {"1": None}},
        {"roundup_power2_divisions": {"x": 1}},
    ],
)
def test_values_of_another_kind_are_refused(recorded: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"expected|invalid literal"):
        settings_from_snapshot(recorded)
