from __future__ import annotations

from dataclasses import replace

import pytest

from vramscope_analysis.allocator import (
    AllocatorSettings,
    SettingsError,
    Version,
    changed_settings,
    parse_settings,
)
from vramscope_analysis.allocator.settings import UNLIMITED

MIB = 1 << 20
VERSIONS: list[Version] = [(2, minor) for minor in range(4, 15)]


def accepted_by(text: str) -> list[Version]:
    """Releases that accept a text."""
    accepted: list[Version] = []
    for version in VERSIONS:
        try:
            parse_settings(text, version=version)
        except SettingsError:
            continue
        accepted.append(version)
    return accepted


def since(minor: int) -> list[Version]:
    return [version for version in VERSIONS if version >= (2, minor)]


def test_options_of_a_text_change_and_others_stay() -> None:
    base = AllocatorSettings(garbage_collection_threshold=0.5, expandable_segments=True)

    settings = parse_settings("max_split_size_mb : 128,expandable_segments:False", base)

    assert settings == AllocatorSettings(
        max_split_size_bytes=128 * MIB, garbage_collection_threshold=0.5
    )
    assert parse_settings("", base) == base
    assert parse_settings("max_split_size_mb:64,max_split_size_mb:128,") == AllocatorSettings(
        max_split_size_bytes=128 * MIB
    )


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("max_split_size_mb:20", since(10)),
        ("max_split_size_mb:21", since(4)),
        ("max_split_size_mb:0", []),
        ("max_split_size_mb:abc", []),
        ("max_split_size_mb:30.5", since(4)),
        ("max_split_size_mb", []),
        ("max_split_size_mb:", []),
        ("max_non_split_rounding_mb:20", since(10)),
        ("max_non_split_rounding_mb:21", since(6)),
        ("garbage_collection_threshold:0", []),
        ("garbage_collection_threshold:1", []),
        ("garbage_collection_threshold:-0.1", []),
        ("garbage_collection_threshold:x", []),
        ("garbage_collection_threshold:0.8", since(4)),
        ("roundup_power2_divisions:3", []),
        ("roundup_power2_divisions:0", []),
        ("roundup_power2_divisions:1", since(4)),
        ("roundup_power2_divisions:[256:1,512:3]", []),
        ("roundup_power2_divisions:[300:1]", []),
        ("roundup_power2_divisions:[0:4]", []),
        ("roundup_power2_divisions:[256:1", []),
        ("roundup_power2_divisions:[]", since(4)),
        ("expandable_segments:true", []),
        ("expandable_segments:1", []),
        ("expandable_segments:True", since(4)),
        ("large_segment_size_mb:10", []),
        ("large_segment_size_mb:11", since(11)),
        ("large_segment_size_mb:64,max_split_size_mb:32", []),
        ("max_split_size_mb:32,large_segment_size_mb:64", []),
        ("large_segment_size_mb:64,max_split_size_mb:64", since(11)),
        ("large_segment_size_mb:64,max_non_split_rounding_mb:32", []),
        ("per_process_memory_fraction:1", since(10)),
        ("per_process_memory_fraction:1.5", []),
        ("per_process_memory_fraction:-1", []),
        ("throw_on_cudamalloc_oom:True", since(12)),
        ("throw_on_cudamalloc_oom:1", []),
        ("backend:native", since(4)),
        ("release_lock_on_cudamalloc:True", since(4)),
        ("pinned_use_background_threads:True", since(6)),
        ("graph_capture_record_stream_reuse:True", since(9)),
        ("pinned_reserve_segment_size_mb:10", since(10)),
        ("pinned_free_catch_all:True", since(12)),
        ("pinned_max_cached_size_mb:1", since(13)),
        ("foo:1", []),
        ("foo", []),
        (",", []),
        ("expandable_segments:True max_split_size_mb:64", []),
    ],
)
def test_each_release_accepts_what_it_knows(text: str, versions: list[Version]) -> None:
    assert accepted_by(text) == versions


def test_the_error_tells_what_was_expected_and_what_held_before() -> None:
    with pytest.raises(SettingsError, match=r"expected True or False for .*, got yes") as error:
        parse_settings("max_split_size_mb:64,expandable_segments:yes,max_split_size_mb:128")

    assert error.value.applied == AllocatorSettings(max_split_size_bytes=64 * MIB)
    with pytest.raises(SettingsError, match=r"expected an option of torch 2\.6, got large_seg"):
        parse_settings("large_segment_size_mb:64", version=(2, 6))


@pytest.mark.parametrize(
    ("text", "divisions"),
    [
        ("8", (8,) * 16),
        # Below the first size its value holds, above the last one nothing does.
        ("[256:1,512:2]", (1,) * 9 + (2,) + (0,) * 6),
        ("[256:1,512:2,1024:4,>:8]", (1,) * 9 + (2, 4) + (8,) * 5),
        ("[4:2,64:8]", (2, 2, 2, 0, 0, 0, 8) + (0,) * 9),
        ("[>:1,256:2]", (2,) * 9 + (1,) * 7),
        ("[131072:4]", (4,) * 16),
        ("[]", (0,) * 16),
    ],
)
def test_divisions_by_size(text: str, divisions: tuple[int, ...]) -> None:
    base = AllocatorSettings(roundup_power2_divisions=(16,) * 16)

    settings = parse_settings(f"roundup_power2_divisions:{text}", base)

    assert settings.roundup_power2_divisions == divisions


def test_older_releases_begin_the_rest_one_size_earlier() -> None:
    text = "roundup_power2_divisions:[512:2,1024:4,>:8]"

    divisions = parse_settings(text, version=(2, 9)).roundup_power2_divisions

    assert divisions == (2,) * 10 + (8,) * 6


def test_a_later_list_adds_to_an_earlier_one() -> None:
    text = "roundup_power2_divisions:[1:2,2:4],roundup_power2_divisions:[8:8]"

    assert parse_settings(text).roundup_power2_divisions == (8,) * 4 + (0,) * 12
    text = "roundup_power2_divisions:[1:2,2:4],roundup_power2_divisions:[1:8]"
    assert parse_settings(text).roundup_power2_divisions == (8, 4) + (0,) * 14


@pytest.mark.parametrize("text", ["-1", "99999999999999"])
def test_a_split_size_above_all_sizes_is_none(text: str) -> None:
    assert parse_settings(f"max_split_size_mb:{text}").max_split_size_bytes == UNLIMITED


def test_rounding_follows_the_segment_size_until_it_is_set() -> None:
    assert parse_settings("large_segment_size_mb:64") == AllocatorSettings(
        large_segment_bytes=64 * MIB, max_non_split_rounding_bytes=64 * MIB
    )
    both = parse_settings("max_non_split_rounding_mb:128,large_segment_size_mb:64")
    assert both.max_non_split_rounding_bytes == 128 * MIB


CURRENT = AllocatorSettings(
    roundup_power2_divisions=(8,) * 16,
    max_split_size_bytes=100 * MIB,
    max_non_split_rounding_bytes=200 * MIB,
    garbage_collection_threshold=0.5,
    large_segment_bytes=32 * MIB,
    expandable_segments=True,
    per_process_memory_fraction=0.5,
    throw_on_cudamalloc_oom=True,
)


@pytest.mark.parametrize(("version", "rounding"), [((2, 10), 200 * MIB), ((2, 14), 32 * MIB)])
def test_at_run_time_some_options_go_back_first(version: Version, rounding: int) -> None:
    changed = changed_settings("", CURRENT, version=version)

    assert changed == replace(
        CURRENT,
        roundup_power2_divisions=(0,) * 16,
        max_split_size_bytes=UNLIMITED,
        garbage_collection_threshold=0.0,
        max_non_split_rounding_bytes=rounding,
    )


def test_a_bad_text_has_changed_settings_all_the_same() -> None:
    with pytest.raises(SettingsError) as error:
        changed_settings("max_split_size_mb:64,bogus", CURRENT)

    applied = error.value.applied
    assert applied.max_split_size_bytes == 64 * MIB
    assert applied.roundup_power2_divisions == (0,) * 16
    assert applied.expandable_segments
