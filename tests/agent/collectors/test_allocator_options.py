"""Every option is checked by itself and with the others, as each release of torch has them."""

from __future__ import annotations

import pytest

from vramscope.collectors.allocator_options import (
    OPTIONS,
    OptionsError,
    followed,
    in_force,
    known_names,
    merged,
    options_text,
    read_options,
    reported_options,
    split_options,
)
from vramscope_analysis.allocator import parse_settings, settings_from_snapshot, snapshot_settings
from vramscope_analysis.allocator.settings_parser import OPTION_SINCE, OTHER_OPTION_SINCE

NEW = (2, 13)


@pytest.mark.parametrize(
    "text",
    [
        "expandable_segments:True",
        "max_split_size_mb:128,garbage_collection_threshold:0.8",
        "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
        "roundup_power2_divisions:8,expandable_segments:False",
        "large_segment_size_mb:64,max_split_size_mb:64",
        "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5",
    ],
)
def test_what_is_right_is_taken_as_it_stands(text: str) -> None:
    spaced = text.replace(",", " , ").replace(":", " : ")
    asked = read_options(spaced, NEW)
    assert parse_settings(options_text(asked)) == parse_settings(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected options such as"),
        (",,", "expected options such as"),
        ("nosuch:1", "expected options of torch 2.13 (expandable_segments, "),
        ("backend:cudaMallocAsync", "fixed once torch is loaded"),
        ("expandable_segments:true", "expandable_segments: expected True or False, got 'true'"),
        ("expandable_segments", "expected True or False, got ''"),
        ("expandable_segments:True:x", "got 'True:x'"),
        ("expandable_segments:True,expandable_segments:False", "expected it once"),
        ("max_split_size_mb:0", "expected MiB from 1"),
        ("max_split_size_mb:-1", "expected MiB from 1"),
        ("max_split_size_mb:64.5", "expected MiB from 1"),
        ("max_split_size_mb:99999999999", "expected MiB from 1"),
        ("max_split_size_mb:[64]", "expected MiB from 1"),
        ("garbage_collection_threshold:1.0", "above 0 and below 1"),
        ("garbage_collection_threshold:0", "above 0 and below 1"),
        ("garbage_collection_threshold:nan", "above 0 and below 1"),
        ("garbage_collection_threshold:.", "above 0 and below 1"),
        ("roundup_power2_divisions:3", "expected a power of two, got '3'"),
        ("roundup_power2_divisions:0", "expected a power of two"),
        ("roundup_power2_divisions:[]", "expected a power of two"),
        ("roundup_power2_divisions:[256:3]", "expected a power of two, got '3'"),
        ("roundup_power2_divisions:[300:4]", "expected a power of two, got '300'"),
        ("roundup_power2_divisions:[512:4,256:2]", "rising sizes"),
        ("roundup_power2_divisions:[65536:4]", "rising sizes"),
        ("roundup_power2_divisions:[>:4]", "expected a power of two, got '>'"),
        ("roundup_power2_divisions:[>:4,256:1]", "expected a power of two, got '>'"),
        ("large_segment_size_mb:10", "expected MiB from 11"),
        ("pinned_num_register_threads:3", "power of two"),
        ("pinned_reserve_segment_size_mb:default", "there is no way back"),
    ],
)
def test_what_is_wrong_is_refused_with_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(OptionsError) as raised:
        read_options(text, NEW)
    assert message in str(raised.value)


def test_each_release_has_its_options_and_the_model_knows_the_same() -> None:
    since = {**OPTION_SINCE, **OTHER_OPTION_SINCE}
    for release in ((2, 4), (2, 6), (2, 9), (2, 10), (2, 11), (2, 12), (2, 13)):
        model = {name for name, first in since.items() if first <= release}
        # pinned_free_catch_all is not for people: it hides errors of the driver.
        assert set(known_names(release)) == model - {"backend", "pinned_free_catch_all"}
    with pytest.raises(OptionsError, match=r"options of torch 2\.4"):
        read_options("large_segment_size_mb:32", (2, 4))


def test_every_option_says_what_it_does_at_run_time() -> None:
    assert all(option.effect for option in OPTIONS.values())


def test_the_full_set_keeps_what_is_not_named() -> None:
    known = {"max_split_size_mb": "64", "expandable_segments": "True"}
    asked = read_options("garbage_collection_threshold:0.5", NEW)
    assert merged(known, asked, NEW) == {**known, "garbage_collection_threshold": "0.5"}


def test_default_leaves_out_what_goes_back_by_itself_and_sends_the_rest() -> None:
    known = {"max_split_size_mb": "64", "expandable_segments": "True"}
    asked = read_options("max_split_size_mb:default,expandable_segments:default", NEW)
    assert merged(known, asked, NEW) == {"expandable_segments": "False"}


@pytest.mark.parametrize(
    ("release", "known", "text", "message"),
    [
        ((2, 6), {}, "max_split_size_mb:20", "max_split_size_mb: expected at least 21, got '20'"),
        ((2, 10), {}, "max_split_size_mb:19", "expected at least 20"),
        (NEW, {"large_segment_size_mb": "64"}, "max_split_size_mb:63", "expected at least 64"),
        (NEW, {"max_split_size_mb": "32"}, "large_segment_size_mb:64", "expected at least 64"),
        (NEW, {}, "max_non_split_rounding_mb:19", "expected at least 20"),
    ],
)
def test_values_have_to_fit_together(
    release: tuple[int, int], known: dict[str, str], text: str, message: str
) -> None:
    with pytest.raises(OptionsError, match=message):
        merged(known, read_options(text, release), release)


def test_a_text_sets_some_options_back_and_leaves_others() -> None:
    first = followed({}, "expandable_segments:True,max_split_size_mb:64,nosuch:1", NEW)
    assert followed(first, "roundup_power2_divisions:[256:1,>:4]", NEW) == {
        "expandable_segments": "True",
        "nosuch": "1",
        "roundup_power2_divisions": "[256:1,>:4]",
    }
    rounding = {"max_non_split_rounding_mb": "32"}
    assert followed(rounding, "", (2, 10)) == rounding
    assert followed(rounding, "", (2, 11)) == {}


def test_the_size_that_others_are_measured_against_comes_first() -> None:
    text = options_text({"expandable_segments": "True", "large_segment_size_mb": "64"})
    assert text == "large_segment_size_mb:64,expandable_segments:True"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_split_size_mb:64,garbage_collection_threshold:0.8,expandable_segments:True",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    ],
)
def test_what_a_snapshot_reports_makes_the_same_settings_again(text: str) -> None:
    settings = parse_settings(text)
    found = in_force({}, snapshot_settings(settings, text))
    assert parse_settings(options_text(found)) == settings_from_snapshot(
        snapshot_settings(settings, text)
    )


def test_the_allocator_is_believed_more_than_texts() -> None:
    known = {"max_split_size_mb": "64", "expandable_segments": "True", "nosuch": "1"}
    reported = {"max_split_size": -1, "expandable_segments": False, "other": "x"}
    assert in_force(known, reported) == {"expandable_segments": "False", "nosuch": "1"}
    assert reported_options({}) == {}
    assert reported_options({"roundup_power2_divisions": {"some": 1}}) == {}


def test_any_text_can_be_split() -> None:
    assert split_options(" a : 1 ,b:[1:2,>:3] , c") == [("a", "1"), ("b", "[1:2,>:3]"), ("c", "")]
    assert split_options("") == []
    assert split_options("[,]:") is not None
