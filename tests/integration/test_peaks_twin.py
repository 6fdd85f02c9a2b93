"""An emulated job does not notice that its peaks are reset, and each step has its true one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.peaks_twins import PEAKS, Twins, step_peaks
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

STEPS = 30
EMULATED = ("--emulate", "--capacity", "1GiB", "--parts-budget", "1")
PEAK_NAMES = tuple(f"step.peak_{name}_bytes" for name in PEAKS)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    folder: Path = tmp_path_factory.mktemp("peaks")
    with ServerProcess(folder) as server:
        yield Twins(server, folder, STEPS, width=96, options=EMULATED, emulated=True)


@pytest.fixture(scope="module")
def watched(twins: Twins) -> dict[str, Any]:
    return twins.watched("watched", "--look=7")


def test_what_the_job_reads_equals_what_its_twin_reads(
    twins: Twins, watched: dict[str, Any]
) -> None:
    untouched = twins.twin("untouched", "--look=7")
    assert len(watched["seen"]) > 20
    assert watched["seen"] == untouched["seen"]
    assert watched["loss"] == untouched["loss"]


def test_the_peaks_of_steps_are_those_of_a_twin_that_resets_at_each(
    twins: Twins, watched: dict[str, Any]
) -> None:
    truth = twins.twin("steps", "--measure=steps")
    columns = twins.rows("watched", *PEAK_NAMES)
    assert step_peaks(columns) == [row["step"] for row in truth["truth"]][1:]
    assert not [note for note in twins.notes("watched") if "passive" in note]


def test_the_peaks_of_parts_are_those_of_a_twin_that_resets_between_them(
    twins: Twins, watched: dict[str, Any]
) -> None:
    truth = twins.twin("parts", "--measure=parts")["truth"]
    parts = {1: "forward", 2: "backward", 3: "optimizer"}
    names = [f"part.{name}.peak_bytes" for name in parts.values()]
    columns = twins.rows("watched", *names, "step.peak_part", *PEAK_NAMES)
    # The first has no begin, and the second tells how long a step takes.
    for position in range(2, STEPS):
        peaks = {name: truth[position][name][0] for name in ("outside", *parts.values())}
        told = {name: columns[f"part.{name}.peak_bytes"][position] for name in parts.values()}
        assert told == {name: peaks[name] for name in parts.values()}, position
        highest = max(peaks.values())
        assert columns["step.peak_allocated_bytes"][position] == highest
        part = columns["step.peak_part"][position]
        assert peaks[parts.get(part, "outside")] == highest
    assert {1, 2, 0} & set(columns["step.peak_part"][2:])
