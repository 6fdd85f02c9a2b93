"""Jobs of real frameworks are resized on the way: no data is lost, or it is refused."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest

from tests.support.resized_jobs import run_jobs

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

FRAMEWORKS = ("plain", "accelerate", "hf", "lightning")
MODULES = {"accelerate": "accelerate", "hf": "transformers", "lightning": "lightning"}
HALF = {"batch_size": 4}

KEPT: dict[str, dict[str, Any]] = {
    "untouched": {},
    "down": {"changes": [[3, HALF]]},
    "down with workers": {"changes": [[3, HALF]], "workers": 2},
    "down with drop_last": {"changes": [[3, HALF]], "drop_last": True},
    "down with both": {"changes": [[3, HALF]], "drop_last": True, "workers": 2},
    "up": {"accumulation": 2, "changes": [[2, {"batch_size": 16}]]},
    "up with workers": {"accumulation": 2, "changes": [[2, {"batch_size": 16}]], "workers": 2},
    "up with drop_last": {
        "accumulation": 2,
        "changes": [[2, {"batch_size": 16}]],
        "drop_last": True,
    },
    "by accumulation": {"changes": [[3, {"name": "set_accumulation", "accumulation": 2}]]},
    "down and up": {"changes": [[3, HALF], [8, {"batch_size": 8}]]},
    "at the end of an epoch": {"changes": [[11, HALF]]},
    "after an epoch": {"changes": [[12, HALF]]},
    "thirds": {"accumulation": 3, "size": 4, "changes": [[2, {"batch_size": 6}]]},
}
"""Scenarios of 96 samples that keep their global batch."""

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no divisor": ({"changes": [[3, {"batch_size": 3}]]}, "2 or 4 would keep the global batch"),
    "another global batch": (
        {"changes": [[3, {"batch_size": 4, "accumulation": 1}]]},
        "global batch would be 4 instead of 8",
    ),
}
OF_ONE: dict[str, dict[str, tuple[dict[str, Any], str]]] = {
    "accelerate": {
        "no accumulate()": (
            {"uses_accumulate": False, "changes": [[3, HALF]]},
            "does not use accelerator.accumulate()",
        ),
    },
    "hf": {
        "a step in the middle": (
            {"samples": 104, "accumulation": 2, "changes": [[2, HALF]]},
            "batch 13 of this epoch in any case",
        ),
        "more steps than there are": (
            {"samples": 100, "drop_last": True, "changes": [[3, HALF]]},
            "the rest would be skipped",
        ),
        "a smaller batch alone": (
            {"changes": [[3, {"batch_size": 4, "accumulation": 1, "change_global_batch": True}]]},
            "the rest would be skipped",
        ),
    },
}


@pytest.fixture(scope="module", params=FRAMEWORKS)
def told(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Name of a framework, and what became of each scenario in it."""
    framework: str = request.param
    if framework in MODULES and importlib.util.find_spec(MODULES[framework]) is None:
        pytest.skip(f"no {MODULES[framework]}")
    refused = {**REFUSED, **OF_ONE.get(framework, {})}
    scenarios = {**KEPT, **{name: scenario for name, (scenario, _) in refused.items()}}
    (answers,) = run_jobs(framework, list(scenarios.values()))
    return framework, dict(zip(scenarios, answers, strict=True))


@pytest.mark.parametrize("name", KEPT)
def test_every_sample_is_trained_on_once_in_the_same_number_of_steps(
    told: tuple[str, dict[str, Any]], name: str
) -> None:
    framework, answers = told
    answer, scenario = answers[name], KEPT[name]
    for epoch in answer["epochs"]:
        assert sorted(epoch) == list(range(96))
    window = scenario.get("size", 8) * scenario.get("accumulation", 1)
    assert answer["steps"] == 2 * 96 // window
    # Never a step of another global batch, whatever was drawn ahead.
    assert {samples for samples, _, _ in answer["rows"]} == {window}
    if framework != "plain":
        untouched = answers["untouched"]["rates"]
        assert len(answer["rates"]) == answer["steps"]
        if answer["steps"] == len(untouched):
            assert answer["rates"] == pytest.approx(untouched)
    if "changes" in scenario:
        assert {receipt["state"] for receipt in answer["receipts"]} == {"done"}
        assert len({size for sizes in answer["sizes"] for size in sizes}) == 2


@pytest.mark.parametrize("name", ["down with workers", "up with workers", "down", "up"])
def test_it_takes_effect_with_the_batch_that_the_receipt_names(
    told: tuple[str, dict[str, Any]], name: str
) -> None:
    _, answers = told
    (receipt,) = answers[name]["receipts"]
    step, wanted = KEPT[name]["changes"][0]
    text = receipt["message"].partition("It takes effect with the ")[2]
    ahead = 0 if text.startswith("next batch") else int(text.split()[4].rstrip("."))
    trained = step * KEPT[name].get("accumulation", 1)
    sizes = answers[name]["sizes"][0]
    assert sizes.index(wanted["batch_size"]) == trained + ahead
    before, after = receipt["before"], receipt["after"]
    assert before["global_batch"] == after["global_batch"]
    assert after["batch_size"] == wanted["batch_size"]


def test_what_cannot_be_done_right_is_refused_and_nothing_changes(
    told: tuple[str, dict[str, Any]],
) -> None:
    framework, answers = told
    for name, (_, reason) in {**REFUSED, **OF_ONE.get(framework, {})}.items():
        (receipt,) = answers[name]["receipts"]
        assert receipt["state"] == "refused", name
        assert reason in receipt["message"]
        assert receipt["message"].endswith("Nothing was changed.")
        sizes = [sizes for epoch in answers[name]["sizes"] for sizes in epoch]
        assert set(sizes) == {8}, json.dumps(answers[name])


ODD: list[dict[str, Any]] = [
    {"samples": 72, "changes": [[3, HALF]]},
    {"samples": 100, "changes": [[2, HALF], [6, {"batch_size": 2}], [9, {"batch_size": 8}]]},
    {"samples": 108, "accumulation": 4, "size": 4, "changes": [[1, {"batch_size": 8}]]},
    {"samples": 77, "accumulation": 3, "changes": [[1, {"batch_size": 12}]], "workers": 2},
]
"""Epochs that do not come out even with what the Trainer has counted before."""


def test_the_trainer_of_transformers_loses_nothing_where_its_counts_are_odd() -> None:
    pytest.importorskip("transformers")
    untouched = [{name: each[name] for name in each if name != "changes"} for each in ODD]
    (answers,) = run_jobs("hf", [*ODD, *untouched])
    for scenario, answer, plain in zip(ODD, answers, answers[len(ODD) :], strict=False):
        states = [receipt["state"] for receipt in answer["receipts"]]
        assert states == ["done"] * len(scenario["changes"]), answer["receipts"]
        assert all(sorted(epoch) == list(range(scenario["samples"])) for epoch in answer["epochs"])
        assert len(answer["epochs"]) == 2
        assert answer["rates"] == pytest.approx(plain["rates"])
        samples = [row[0] for row in answer["rows"]]
        assert samples == [row[0] for row in plain["rows"]]


def test_with_consent_the_global_batch_changes_and_drop_last_is_told() -> None:
    alone = {"batch_size": 16, "change_global_batch": True}
    scenarios = [
        {"samples": 100, "changes": [[3, alone]], "drop_last": drop_last, "workers": workers}
        for drop_last in (False, True)
        for workers in (0, 2)
    ]
    (answers,) = run_jobs("plain", scenarios)
    for answer, scenario in zip(answers, scenarios, strict=True):
        (receipt,) = answer["receipts"]
        assert receipt["after"]["global_batch"] == 16
        for epoch in answer["epochs"]:
            assert len(set(epoch)) == len(epoch)
            assert len(epoch) == 100 or (scenario["drop_last"] and len(epoch) > 100 - 16)
        left_out = 100 - len(answer["epochs"][0])
        if scenario["drop_last"]:
            assert f"drop_last leaves out {left_out} samples" in receipt["message"]
        else:
            assert "Every sample is seen." in receipt["message"]


def test_a_stream_of_unknown_length_is_resized_too() -> None:
    alone = {"batch_size": 4, "change_global_batch": True}
    scenarios = [
        {"iterable": True, "changes": [[3, alone]], "drop_last": drop_last, "workers": workers}
        for drop_last in (False, True)
        for workers in (0, 2)
    ]
    (answers,) = run_jobs("plain", scenarios)
    for answer in answers:
        assert sorted(answer["epochs"][0]) == list(range(96))
        assert answer["sizes"][0][-1] == 4
        assert answer["receipts"][0]["state"] == "done"
