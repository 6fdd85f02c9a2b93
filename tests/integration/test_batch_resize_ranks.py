"""Two ranks are resized at the same step: equally many batches on both, or nothing on either."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.support.resized_jobs import run_jobs

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

MODULES = {"accelerate": "accelerate", "hf": "transformers", "lightning": "lightning"}
HALF = {"batch_size": 4}
DOUBLE = {"batch_size": 16, "change_global_batch": True, "accumulation": 1}
SCENARIOS: list[dict[str, Any]] = [
    {"samples": 192, "changes": [[3, HALF]]},
    {"samples": 192, "changes": [[2, HALF], [14, {"batch_size": 8}]], "workers": 2},
    {"samples": 200, "changes": [[2, DOUBLE]], "workers": 2, "drop_last": True},
]
OFTEN = [[step, {"batch_size": (4, 2, 8)[n % 3]}] for n, step in enumerate(range(2, 92, 5))]
AT_ANY_PLACE: list[dict[str, Any]] = [
    {"samples": 192, "epochs": 8, "changes": OFTEN},
    {"samples": 192, "epochs": 8, "changes": OFTEN, "workers": 2, "drop_last": True},
]


@pytest.fixture(scope="module", params=["plain", "accelerate", "hf", "lightning"])
def ranks(request: pytest.FixtureRequest) -> list[list[dict[str, Any]]]:
    """What became of each scenario, by rank, in one framework: its start takes longest."""
    framework: str = request.param
    if framework in MODULES and importlib.util.find_spec(MODULES[framework]) is None:
        pytest.skip(f"no {MODULES[framework]}")
    return run_jobs(framework, [*SCENARIOS, *AT_ANY_PLACE], ranks=2)


def test_both_ranks_take_equally_many_batches_and_share_the_samples(
    ranks: list[list[dict[str, Any]]],
) -> None:
    for scenario, first, second in zip(SCENARIOS, *ranks, strict=False):
        assert [receipt["state"] for receipt in first["receipts"]] == ["done"] * len(
            scenario["changes"]
        )
        assert first["sizes"] == second["sizes"]
        assert len({size for sizes in first["sizes"] for size in sizes}) == 2
        assert first["steps"] == second["steps"]
        for mine, theirs in zip(first["epochs"], second["epochs"], strict=True):
            assert len({*mine, *theirs}) == len(mine) + len(theirs)
            if not scenario.get("drop_last"):
                assert len(mine) + len(theirs) == scenario["samples"]
        if not scenario.get("drop_last"):
            assert first["steps"] == 24
            assert {samples for samples, _, _ in first["rows"]} == {8}


def test_changes_at_any_place_of_an_epoch_lose_nothing(ranks: list[list[dict[str, Any]]]) -> None:
    often = (of_rank[len(SCENARIOS) :] for of_rank in ranks)
    for first, second in zip(*often, strict=True):
        assert first["sizes"] == second["sizes"]
        states = [receipt["state"] for receipt in first["receipts"]]
        assert states == [receipt["state"] for receipt in second["receipts"]]
        told = [receipt["message"] for receipt in first["receipts"] if receipt["state"] != "done"]
        # A command comes while the one before waits for its batch: nothing else is in the way.
        assert all("another change of sizes" in message for message in told), told
        assert states.count("done") >= 12
        for mine, theirs in zip(first["epochs"], second["epochs"], strict=True):
            assert sorted([*mine, *theirs]) == list(range(192))
        assert first["steps"] == second["steps"] == 96
        assert {samples for samples, _, _ in first["rows"]} == {8}


def test_accelerate_gives_each_rank_its_part_of_a_split_batch() -> None:
    pytest.importorskip("accelerate")
    scenario = {"samples": 96, "split": True, "changes": [[2, {"batch_size": 4}]]}
    short = {**scenario, "samples": 100, "workers": 2}
    ((first, first_short), (second, second_short)) = run_jobs(
        "accelerate", [scenario, short], ranks=2
    )
    assert first["sizes"] == second["sizes"]
    for mine, theirs in zip(first["epochs"], second["epochs"], strict=True):
        assert sorted([*mine, *theirs]) == list(range(96))
    assert first_short["sizes"] == second_short["sizes"]
    for mine, theirs in zip(first_short["epochs"], second_short["epochs"], strict=True):
        assert {*mine, *theirs} == set(range(100))


def test_ranks_that_would_not_do_the_same_do_nothing_and_say_why() -> None:
    scenarios = [
        {"changes": [[3, HALF]], "unequal": True},
        {"changes": [[2, HALF]], "workers": 1, "more_workers": True},
    ]
    ranks = run_jobs("plain", scenarios, ranks=2)
    reasons = ["would draw equally many batches", "Ranks differ in the batch of the change"]
    for answers in ranks:
        for answer, reason in zip(answers, reasons, strict=True):
            (receipt,) = answer["receipts"]
            assert receipt["state"] == "refused"
            assert reason in receipt["message"]
            assert {size for sizes in answer["sizes"] for size in sizes} == {8}
    for one, other in zip(*ranks, strict=True):
        assert one["receipts"][0]["message"] == other["receipts"][0]["message"]
