from __future__ import annotations

import itertools
from typing import Any

import pytest

from vramscope.cli.replay_text import cost_words, replay_text

MIB = 1 << 20
GIB = 1 << 30

OUTCOME: dict[str, Any] = {
    "predicted_peak_reserved_bytes": 3 * GIB,
    "predicted_peak_allocated_bytes": 2 * GIB,
    "peak": {"event": 1234, "time_us": 5, "step": 7},
    "fragmentation_at_peak": 0.25,
    "rounding_waste_at_peak_bytes": 6 * MIB,
    "device_allocs": 1501,
    "device_frees": 2,
    "retries": 0,
    "oom": False,
    "out_of_memory": None,
    "end": None,
}
OOM = {
    "event": 900,
    "time_us": 9,
    "step": 3,
    "requested_bytes": 512 * MIB,
    "segment_bytes": 512 * MIB,
    "reserved_bytes": 7 * GIB,
    "allocated_bytes": 6 * GIB,
    "allowed_bytes": 8 * GIB,
    "needed_bytes": 9 * GIB,
}
ANSWER: dict[str, Any] = {
    "source": "job.pickle",
    "device": 0,
    "events": 62130,
    "steps": 40,
    "torch_version": "2.11",
    "torch_version_is_guessed": True,
    "torch_versions_that_fit": ["2.10", "2.11"],
    "recorded_settings_text": "",
    "recorded_peak_reserved_bytes": 3 * GIB,
    "recorded_ooms": 0,
    "is_complete": True,
    "inferred": None,
    "is_exact": True,
    "is_far_off": False,
    "segment_events": 501,
    "segment_mismatches": 0,
    "blocks": 57000,
    "block_mismatches": 0,
    "final_mismatches": 0,
    "unknown_frees": 0,
    "first_mismatches": [],
    "better_torch_versions": [],
    "settings_text": "",
    "changed_settings": {},
    "settings": {"garbage_collection_threshold": 0.0},
    "capacity_source": "unbounded",
    "capacity_bytes": None,
    "limit_bytes": None,
    "least_refused_bytes": None,
    "advice": None,
    "advised": None,
    **OUTCOME,
}
ADVICE: dict[str, Any] = {
    "settings_text": "expandable_segments:True",
    "settings": {"garbage_collection_threshold": 0.0},
    "is_recorded": False,
    "limit_bytes": None,
    "limit_is_assumed": False,
    "gain_bytes": 900 * MIB,
    "more_device_allocs": 0,
    "more_device_frees": 0,
    "more_retries": 0,
    "more_rounding_waste_bytes": 0,
    "changes": 1,
    "is_worth_it": True,
    "costs": [],
    **OUTCOME,
    "predicted_peak_reserved_bytes": 3 * GIB - 900 * MIB,
}
NOW: dict[str, Any] = {
    **ADVICE,
    "settings_text": "",
    "is_recorded": True,
    "gain_bytes": 0,
    "changes": 0,
    "is_worth_it": False,
    **OUTCOME,
}


def words(label: str, **changes: Any) -> list[str]:
    """The line with a label and those that go on from it."""
    lines = replay_text({**ANSWER, **changes}).splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith(label + " "))
    more = itertools.takewhile(lambda line: line.startswith(" "), lines[at + 1 :])
    return [line.removeprefix(label).strip() for line in (lines[at], *more)]


def test_it_says_what_was_recorded() -> None:
    assert words("recording") == ["job.pickle: device 0, 62,130 events, 40 optimizer steps"]
    assert words("recording", steps=None, events=1) == ["job.pickle: device 0, 1 event"]
    assert words("made with") == [
        "torch 2.11 (guessed; 2.10 to 2.11 write such snapshots), default settings"
    ]
    told = {"torch_version_is_guessed": False, "recorded_settings_text": "max_split_size_mb:64"}
    assert words("made with", **told) == ["torch 2.11, max_split_size_mb:64"]
    by_choices = {"torch_version": "2.14", "torch_versions_that_fit": ["2.12", "2.12"]}
    assert words("made with", **by_choices) == [
        "torch 2.14 (guessed from the blocks that it chose; its keys are those of 2.12), "
        "default settings"
    ]


def test_a_recording_that_lacks_its_beginning_says_how_much_is_known() -> None:
    assert words("beginning") == ["complete: it starts with the first allocation"]
    inferred = {"recorded_blocks": 1000, "inferred_blocks": 20, "guessed_blocks": 0}
    known = words("beginning", is_complete=False, inferred={**inferred, "uncertain_bytes": 0})
    assert known == [
        "missing (recorded late, or the ring wrapped): 1,020 blocks before, "
        "1,000 still there at the end, 20 inferred, 0 guessed"
    ]
    inferred["guessed_blocks"] = 3
    doubtful = words("beginning", is_complete=False, inferred={**inferred, "uncertain_bytes": MIB})
    assert doubtful[0].endswith("3 guessed, whose sizes may be 1 MiB too small in all")


def test_an_exact_replay_is_called_so() -> None:
    assert words("replay") == [
        "exact: all 501 segment events and the addresses of all 57,000 blocks as recorded"
    ]


def test_a_replay_that_differs_says_how_much_and_where_first() -> None:
    first = {"event": 12, "kind": "segment"}
    lines = words(
        "replay",
        is_exact=False,
        segment_mismatches=3,
        block_mismatches=20,
        first_mismatches=[{**first, "expected": "segment_alloc of 20 MiB", "got": "nothing"}],
        better_torch_versions=["2.13", "2.12"],
    )
    assert lines == [
        "3 differences in 501 segment events, 20 of 57,000 blocks lie elsewhere",
        "first at event 12: expected segment_alloc of 20 MiB, got nothing",
        "the rules of torch 2.13 fit better: try --torch 2.13",
    ]


def test_what_differs_only_at_the_end_is_said() -> None:
    [line] = words("replay", is_exact=False, final_mismatches=1, unknown_frees=2)
    assert line.endswith("lie elsewhere, 1 difference in what is left, 2 frees of unknown blocks")


def test_a_recording_without_requests_says_nothing_about_other_settings() -> None:
    nothing = {"blocks": 0, "segment_events": 0}
    assert words("replay", **nothing) == ["nothing to compare: no request for memory was recorded"]
    assert words("replay", **nothing, recorded_ooms=1)[0].startswith("exact: ")
    advice = {"advice": [NOW, ADVICE]}
    told = "Advice: none, because no request for memory was recorded."
    assert told in replay_text({**ANSWER, **nothing, **advice})
    assert told not in replay_text({**ANSWER, **advice})


def test_nothing_reserved_is_no_part_of_anything() -> None:
    nothing = {"predicted_peak_reserved_bytes": 0, "fragmentation_at_peak": 0.0}
    assert words("in use then", **nothing, peak=None) == ["nothing"]
    assert "%" not in replay_text({**ANSWER, "advice": [{**NOW, **nothing}]}).split("\n\n")[-1]


def test_a_replay_that_is_another_job_is_not_to_be_trusted() -> None:
    doubt = "too far from what was recorded: do not trust what it predicts"
    assert doubt not in words("replay", is_exact=False)
    assert doubt in words("replay", is_exact=False, is_far_off=True)
    text = replay_text({**ANSWER, "is_far_off": True, "advice": [ADVICE, NOW]})
    assert "Advice: none, because the replay is too far from what was recorded." in text


def test_the_peak_is_compared_with_the_recorded_one() -> None:
    assert words("peak reserved") == ["3 GiB, as recorded"]
    assert words("peak reserved", predicted_peak_reserved_bytes=2 * GIB) == [
        "2 GiB predicted, 3 GiB recorded, -33.3 %"
    ]
    nothing = {"predicted_peak_reserved_bytes": 5, "recorded_peak_reserved_bytes": 0}
    assert words("peak reserved", **nothing) == ["5 B predicted, 0 B recorded"]
    assert words("in use then") == [
        "2.25 GiB (75.0 %), in step 7 (event 1,234), of which rounding wastes 6 MiB"
    ]


def test_other_settings_are_named_only_when_asked_for() -> None:
    assert "what if" not in replay_text(ANSWER)
    asked = {"changed_settings": {"max_split_size_mb": "64"}}
    assert words("what if", **asked, settings_text="max_split_size_mb:64") == [
        "max_split_size_mb:64"
    ]


def test_collection_without_a_limit_is_said_to_do_nothing() -> None:
    collecting = {"settings": {"garbage_collection_threshold": 0.6}}
    note = "garbage_collection_threshold does nothing without a memory limit"
    assert note in replay_text({**ANSWER, **collecting})
    assert note not in replay_text({**ANSWER, **collecting, "limit_bytes": GIB})
    assert note not in replay_text(ANSWER)


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({"capacity_source": "unbounded"}, "without end: nothing was refused"),
        ({"capacity_source": "given", "capacity_bytes": 8 * GIB}, "8 GiB, as given"),
        (
            {"capacity_source": "given", "capacity_bytes": 8 * GIB, "limit_bytes": 2 * GIB},
            "a limit of 2 GiB, as given",
        ),
        (
            {
                "capacity_source": "inferred",
                "capacity_bytes": 4 * GIB,
                "least_refused_bytes": 5 * GIB,
            },
            "4 GiB, inferred: 3 GiB were reserved and 5 GiB were refused",
        ),
        (
            {"capacity_source": "varying"},
            "as much as was refused each time: no constant limit explains it",
        ),
    ],
)
def test_it_says_how_much_memory_there_was(known: dict[str, Any], text: str) -> None:
    assert words("memory", **known) == [text]


def test_running_out_of_memory_says_where_and_by_how_much() -> None:
    assert words("out of memory") == ["no"]
    moment = {"event": 8, "time_us": 1, "step": 2}
    fails = {"at": moment, "reason": "out_of_memory"}
    told = "in step 3 (event 900): 512 MiB were asked for with 7 GiB of 8 GiB reserved; 1 GiB more"
    assert words("out of memory", oom=True, out_of_memory=OOM, end=fails) == [
        f"{told} would do for the rest of the job"
    ]
    assert words("out of memory", oom=True, out_of_memory=OOM) == [
        f"{told} would do for this request"
    ]
    survives = {"at": moment, "reason": "recorded_out_of_memory"}
    assert words("out of memory", end=survives) == [
        "no, but the recorded job did in step 2 (event 8): the end is unknown"
    ]


def test_the_best_settings_are_advised_with_gain_and_cost() -> None:
    best = {**ADVICE, "more_device_allocs": 41, "costs": ["41 more device allocations than now"]}
    text = replay_text({**ANSWER, "advice": [best, NOW], "advised": best["settings_text"]})
    _, verdict, table = text.split("\n\n")
    assert verdict.splitlines() == [
        "Advice: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "  reserves 900 MiB (29.3 %) less than the 3 GiB of now; "
        "41 more device allocations than now.",
    ]
    head, first, second = table.splitlines()
    assert head.split()[:3] == ["SETTINGS", "PEAK", "RESERVED"]
    assert first.split()[0] == "expandable_segments:True"
    assert "900 MiB" in first
    assert second.startswith("defaults (now)")


def test_advice_from_a_recording_without_its_beginning_says_what_it_lacks() -> None:
    told = "before the recording stays as it was"
    inferred = dict.fromkeys(("recorded_blocks", "inferred_blocks", "guessed_blocks"), 1)
    late = {"is_complete": False, "inferred": {**inferred, "uncertain_bytes": 0}}
    assert told in replay_text({**ANSWER, **late, "advice": [NOW]})
    assert told not in replay_text({**ANSWER, "advice": [NOW]})
    assert told not in replay_text({**ANSWER, **late})


def test_settings_that_nothing_beats_are_kept() -> None:
    text = replay_text({**ANSWER, "advice": [NOW, {**ADVICE, "gain_bytes": MIB}]})
    assert "Advice: keep the settings; no other saves 64 MiB and 2 %." in text


def test_defaults_are_advised_as_an_unset_variable() -> None:
    now = {**NOW, "settings_text": "max_split_size_mb:64"}
    best = {**ADVICE, "settings_text": ""}
    text = replay_text({**ANSWER, "advice": [best, now], "advised": ""})
    assert "Advice: PYTORCH_CUDA_ALLOC_CONF=(unset)" in text
    assert "; costs nothing that the replay can see." in text


@pytest.mark.parametrize(
    ("now", "gain"),
    [
        ({"oom": True, "out_of_memory": OOM}, "  gets past where the job ran out of memory;"),
        ({"retries": 3}, "  avoids 3 retries;"),
        ({"retries": 1}, "  avoids 1 retry;"),
    ],
)
def test_what_is_avoided_is_named(now: dict[str, Any], gain: str) -> None:
    advice = [ADVICE, {**NOW, **now}]
    text = replay_text({**ANSWER, "advice": advice, "advised": ADVICE["settings_text"]})
    assert gain in text


def test_when_everything_runs_out_of_memory_nothing_is_advised() -> None:
    advice = [{**row, "oom": True, "out_of_memory": OOM} for row in (ADVICE, NOW)]
    text = replay_text({**ANSWER, "advice": advice})
    assert "none of these settings avoids running out of memory" in text
    assert text.count("out of memory in step 3 (event 900)") == 2


@pytest.mark.parametrize(
    ("changes", "costs"),
    [
        ({}, []),
        ({"more_device_allocs": -5, "more_rounding_waste_bytes": -5, "more_retries": -1}, []),
        ({"more_device_allocs": 1}, ["1 more device allocation than now"]),
        ({"more_rounding_waste_bytes": 300 * MIB}, ["rounding wastes 6 MiB at peak"]),
        ({"more_rounding_waste_bytes": MIB}, []),
        (
            {"more_retries": 2, "more_device_allocs": 1234},
            ["costs 2 more retries", "1,234 more device allocations than now"],
        ),
        (
            {
                "settings": {"garbage_collection_threshold": 0.6},
                "limit_bytes": 3 * GIB,
                "limit_is_assumed": True,
            },
            ["needs set_per_process_memory_fraction (3 GiB, assumed)"],
        ),
        ({"is_recorded": True, "more_retries": 1}, []),
    ],
)
def test_every_cost_is_named(changes: dict[str, Any], costs: list[str]) -> None:
    assert cost_words({**ADVICE, **changes}) == costs
