from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.support.allocator_traces import FOLDER
from vramscope.cli.replay_answer import replay_answer
from vramscope_analysis.allocator import settings_dict
from vramscope_analysis.replay import (
    Advice,
    Prediction,
    Recording,
    ReplayReport,
    advise,
    predict,
    replay_recorded,
)
from vramscope_analysis.replay.comparison import Mismatch
from vramscope_analysis.replay.past.initial_state import InferredState, InitialState
from vramscope_analysis.snapshot import read_snapshot

JOB = "lightning__default"
OOM_JOB = "oom_retry__default"


@cache
def recording(name: str) -> Recording:
    return Recording.from_snapshot(read_snapshot(FOLDER / f"{name}.pickle.gz"))


@cache
def report(name: str) -> ReplayReport:
    return replay_recorded(recording(name))


@cache
def prediction(name: str) -> Prediction:
    return predict(recording(name), recording(name).settings)


def answer(
    name: str = JOB,
    *,
    told_version: tuple[int, int] | None = None,
    advice: list[Advice] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """The answer about a real job whose replay said something else, as JSON gives it back."""
    given = replace(report(name), **changes)
    found = replay_answer(
        recording(name), given, prediction(name), advice, told_version=told_version
    )
    plain: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    assert plain == found
    return plain


def test_what_is_not_known_is_null() -> None:
    found = answer()
    unknown = {name for name, value in found.items() if value is None}
    assert unknown == {
        *("inferred", "capacity_bytes", "limit_bytes", "least_refused_bytes"),
        *("out_of_memory", "end", "advice", "advised"),
    }
    assert found["capacity_source"] == "unbounded"
    assert found["is_complete"]


def test_steps_are_null_where_the_job_named_none() -> None:
    nameless = replace(recording(JOB), annotations=[])
    found = replay_answer(nameless, report(JOB), prediction(JOB), None, told_version=None)
    assert found["steps"] is None
    assert answer()["steps"] == 12


def test_settings_have_pytorchs_names() -> None:
    found = answer()
    assert found["settings"] == settings_dict(recording(JOB).settings)
    assert {"expandable_segments", "garbage_collection_threshold"} <= found["settings"].keys()


def test_the_release_is_a_guess_unless_it_was_named() -> None:
    guessed, told = answer(), answer(told_version=(2, 11))
    assert guessed["torch_version"] == told["torch_version"] == "2.11"
    assert (guessed["torch_version_is_guessed"], told["torch_version_is_guessed"]) == (True, False)
    assert guessed["torch_versions_that_fit"][-1] == "2.11"


def test_differences_are_listed() -> None:
    mismatch = Mismatch(7, "segment", "segment_alloc of 20 MiB", "nothing")
    found = answer(segment_mismatches=2, first_mismatches=[mismatch], fitting_versions=[(2, 12)])
    assert not found["is_exact"]
    assert found["segment_mismatches"] == 2
    assert found["first_mismatches"] == [
        {"event": 7, "kind": "segment", "expected": "segment_alloc of 20 MiB", "got": "nothing"}
    ]
    assert found["better_torch_versions"] == ["2.12"]
    assert answer()["is_exact"]


def test_a_replay_that_is_another_job_is_no_ground_for_advice() -> None:
    advice = advise(recording(JOB))
    near, far = (answer(segment_mismatches=number, advice=advice) for number in (3, 4))
    assert near["segment_events"] == 33
    assert (near["is_far_off"], far["is_far_off"]) == (False, True)
    assert (near["advised"], far["advised"]) == ("expandable_segments:True", None)
    assert near["advice"] == far["advice"]


def test_a_missing_beginning_says_what_was_inferred() -> None:
    inferred = InferredState(recorded_blocks=5, guessed_blocks=1, uncertain_bytes=512)
    found = answer(initial=InitialState(3, [], inferred, is_complete=False))
    assert not found["is_complete"]
    assert found["inferred"]["recorded_blocks"] == 5
    assert found["inferred"]["uncertain_bytes"] == 512


def test_a_failure_is_located_and_measured() -> None:
    found = answer(OOM_JOB)
    failure = found["out_of_memory"]
    assert found["oom"]
    assert found["recorded_ooms"] > 0
    assert failure["needed_bytes"] > failure["allowed_bytes"] >= failure["reserved_bytes"]
    assert failure["step"] is not None
    assert found["least_refused_bytes"] > found["recorded_peak_reserved_bytes"]


@pytest.mark.parametrize("name", [JOB, OOM_JOB])
def test_every_piece_of_advice_has_an_outcome_of_its_own(name: str) -> None:
    advice = advise(recording(name))
    found = answer(name, advice=advice)
    outcome = {"predicted_peak_reserved_bytes", "retries", "oom", "end", "device_allocs"}
    assert all(outcome <= row.keys() for row in found["advice"])
    texts = [row["settings_text"] for row in found["advice"]]
    assert texts == [each.text for each in advice]
    assert found["advised"] is None or found["advised"] in texts
    now = next(row for row in found["advice"] if row["is_recorded"])
    assert now["predicted_peak_reserved_bytes"] == found["predicted_peak_reserved_bytes"]
    assert now["costs"] == []
    assert any(row["costs"] for row in found["advice"])
