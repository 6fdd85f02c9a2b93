from __future__ import annotations

import pytest

from vramscope.cli.problem import Problem
from vramscope.cli.replay_settings import changed, changes_of, limit_of
from vramscope_analysis.allocator import AllocatorSettings

MIB = 1 << 20
DEFAULTS = AllocatorSettings()
NEW = (2, 11)


def settings_of(*texts: str, recorded: AllocatorSettings = DEFAULTS) -> AllocatorSettings:
    return changed(recorded, changes_of(list(texts)), NEW)


def refusal(*texts: str) -> str:
    with pytest.raises(Problem) as caught:
        settings_of(*texts)
    return str(caught.value)


def test_the_last_value_of_a_key_counts() -> None:
    settings = settings_of("max_split_size_mb=64", "max_split_size_mb = 99")
    assert settings.max_split_size_bytes == 99 * MIB


def test_what_is_not_named_stays_as_recorded() -> None:
    recorded = AllocatorSettings(expandable_segments=True, garbage_collection_threshold=0.7)
    settings = settings_of("max_split_size_mb=64", recorded=recorded)
    assert settings.expandable_segments
    assert settings.garbage_collection_threshold == 0.7


def test_a_list_is_one_value() -> None:
    settings = settings_of("roundup_power2_divisions=[256:1,512:2,>:4]")
    assert settings.roundup_power2_divisions[8:11] == (1, 2, 4)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("max_split_size_mb", "--set: expected KEY=VALUE, got 'max_split_size_mb'"),
        ("max_split_size_mb=", "--set: expected KEY=VALUE, got 'max_split_size_mb='"),
        ("colour=red", "--set: no setting 'colour'; expected one of: "),
        (
            "pinned_num_register_threads=8",
            "--set: expected a setting of device memory, got 'pinned_num_register_threads'",
        ),
        ("max_split_size_mb=1", "--set max_split_size_mb: expected "),
        ("expandable_segments=true", "--set expandable_segments: expected True or"),
        ("roundup_power2_divisions=3", "--set roundup_power2_divisions: expected "),
        ("garbage_collection_threshold=80", "--set garbage_collection_threshold: expected "),
        ("throw_on_cudamalloc_oom=True", "--set throw_on_cudamalloc_oom: expected an option of"),
    ],
)
def test_what_pytorch_does_not_take_is_refused(text: str, line: str) -> None:
    assert refusal(text).startswith(line)


def test_a_fraction_is_understood_for_releases_that_have_only_the_function() -> None:
    changes = changes_of(["per_process_memory_fraction=0.5"])
    assert changed(DEFAULTS, changes, (2, 6)).per_process_memory_fraction == 0.5


@pytest.mark.parametrize("value", ["True,max_split_size_mb:64", "True:False", "True,"])
def test_a_value_cannot_bring_another_setting_along(value: str) -> None:
    line = refusal(f"expandable_segments={value}")
    assert line.startswith("--set expandable_segments: expected one value, got ")


@pytest.mark.parametrize("order", [1, -1])
def test_settings_that_do_not_go_together_are_refused_in_any_order(order: int) -> None:
    texts = ["max_split_size_mb=32", "large_segment_size_mb=64"][::order]
    assert refusal(*texts).startswith("--set: expected a max_split_size_mb of at least 64, got 32")


def test_settings_that_go_together_only_are_taken_in_any_order() -> None:
    recorded = AllocatorSettings(
        large_segment_bytes=64 * MIB, max_non_split_rounding_bytes=64 * MIB
    )
    texts = ["max_split_size_mb=32", "large_segment_size_mb=20"]
    both = [settings_of(*each, recorded=recorded) for each in (texts, texts[::-1])]
    assert both[0] == both[1]
    assert both[0].max_split_size_bytes == 32 * MIB


def test_the_wrong_one_of_several_is_named() -> None:
    line = refusal("expandable_segments=True", "max_split_size_mb=lots")
    assert line.startswith("--set max_split_size_mb: expected a whole number")


def test_a_limit_is_a_fraction_of_the_capacity_whoever_set_it() -> None:
    half = AllocatorSettings(per_process_memory_fraction=0.5)
    assert limit_of(half, {}, 400 * MIB) == 200 * MIB
    assert limit_of(half, {}, None) is None
    assert limit_of(DEFAULTS, {}, 400 * MIB) is None
    with pytest.raises(Problem, match="expected --capacity too"):
        limit_of(half, {"per_process_memory_fraction": "0.5"}, None)
