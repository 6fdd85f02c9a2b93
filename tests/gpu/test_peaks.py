"""On a real GPU: steps have the peaks of a twin that resets at each, and the job sees its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.peaks_twins import PEAKS, Twins, step_peaks
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(500)]

STEPS = 500
PEAK_NAMES = tuple(f"step.peak_{name}_bytes" for name in PEAKS)
PARTS = {1: "forward", 2: "backward", 3: "optimizer"}


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    folder: Path = tmp_path_factory.mktemp("peaks")
    with ServerProcess(folder) as server:
        yield Twins(server, folder, STEPS, width=1024)


@pytest.fixture(scope="module")
def watched(twins: Twins) -> dict[str, Any]:
    return twins.watched("watched", "--look=7", options=["--parts-budget", "1"])


@pytest.fixture(scope="module")
def truth(twins: Twins) -> list[dict[str, list[int]]]:
    found: list[dict[str, list[int]]] = twins.twin("steps", "--measure=steps")["truth"]
    return found


def test_step_peaks_equal_those_of_the_twin_byte_for_byte_whatever_the_user_resets(
    twins: Twins, watched: dict[str, Any], truth: list[dict[str, list[int]]]
) -> None:
    assert len(watched["seen"]) > 500
    columns = twins.rows("watched", *PEAK_NAMES)
    assert step_peaks(columns) == [row["step"] for row in truth][1:]
    assert not [note for note in twins.notes("watched") if "passive" in note]


def test_what_the_user_reads_equals_what_the_twin_reads(
    twins: Twins, watched: dict[str, Any]
) -> None:
    untouched = twins.twin("untouched", "--look=7")
    assert len(watched["seen"]) == len(untouched["seen"])
    for number, (ours, theirs) in enumerate(zip(watched["seen"], untouched["seen"], strict=True)):
        assert ours == theirs, number
    assert watched["loss"] == untouched["loss"]


def test_parts_have_the_peaks_of_a_twin_that_resets_between_them(
    twins: Twins, watched: dict[str, Any]
) -> None:
    found = twins.twin("parts", "--measure=parts")["truth"]
    names = [f"part.{name}.peak_bytes" for name in PARTS.values()]
    columns = twins.rows("watched", *names, "step.peak_part", *PEAK_NAMES)
    for position in range(2, STEPS):
        peaks = {name: found[position][name][0] for name in ("outside", *PARTS.values())}
        told = {name: columns[f"part.{name}.peak_bytes"][position] for name in PARTS.values()}
        assert told == {name: peaks[name] for name in PARTS.values()}, position
        highest = max(peaks.values())
        assert columns["step.peak_allocated_bytes"][position] == highest
        assert peaks[PARTS.get(columns["step.peak_part"][position], "outside")] == highest


def test_with_the_default_budget_some_steps_are_split_and_all_have_their_peak(
    twins: Twins, truth: list[dict[str, list[int]]]
) -> None:
    twins.watched("sparse", "--look=9")
    columns = twins.rows("sparse", "part.backward.peak_bytes", *PEAK_NAMES)
    assert step_peaks(columns) == [row["step"] for row in truth][1:]
    split = [peak for peak in columns["part.backward.peak_bytes"] if peak is not None and peak >= 0]
    assert 0 < len(split) < STEPS / 4


@pytest.mark.parametrize("settings", ["expandable_segments:True", "max_split_size_mb:64"])
def test_other_settings_of_the_allocator_change_nothing_of_that(
    twins: Twins, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", settings)
    name = settings.partition(":")[0]
    twins.watched(name, "--look=5")
    true = twins.twin(f"{name}-steps", "--measure=steps")["truth"]
    columns = twins.rows(name, *PEAK_NAMES)
    assert step_peaks(columns) == [row["step"] for row in true][1:]
