"""Memory that grows without leaking: which line it is, and that nothing of it stays."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.job_process import REPOSITORY, finish, foreign_lines, start
from vramscope_analysis.moments import RecordedMemory, growth_between, moment_of
from vramscope_analysis.snapshot import read_snapshot

JOB = REPOSITORY / "tests/support/jobs/harmless_growth.py"
MIB = 1 << 20

pytestmark = pytest.mark.torch


def line_of(comment: str) -> str:
    lines = enumerate(JOB.read_text().splitlines(), 1)
    return next(f"harmless_growth.py:{n} main" for n, line in lines if line.endswith(comment))


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[RecordedMemory, dict[str, list[int]]]:
    """What the job recorded, and the number of entries at each of its marks."""
    path = tmp_path_factory.mktemp("job") / "snapshot.pickle"
    command = [sys.executable, "-m", "vramscope", "run", "--no-local-server", "--emulate"]
    command += ["--exit-timeout-s=0", str(JOB), str(path)]
    code, output, errors = finish(start(command))
    assert (code, foreign_lines(errors)) == (0, []), errors
    marks: dict[str, list[int]] = json.loads(output.splitlines()[-1])
    return RecordedMemory.of(read_snapshot(path)), marks


def test_a_peak_of_one_step_is_explained_by_its_largest_block(
    job: tuple[RecordedMemory, dict[str, list[int]]],
) -> None:
    memory, marks = job
    ends = [entries - 1 for entries in marks["steps"]]
    # Nothing stays: the ends of the steps are alike, whatever the number of boxes.
    between = growth_between(memory, ends[1], memory, ends[-1])
    assert between.after_bytes == between.before_bytes
    assert [row for row in between.rows if row.bytes] == []
    # The highest step is the one with most boxes, and its line is told.
    live = memory.live_bytes
    peaks = [
        first + int(live[first + 1 : last + 2].argmax())
        for first, last in zip([0, *ends[:-1]], ends, strict=True)
    ]
    heights = [int(live[peak + 1]) for peak in peaks]
    assert heights.index(max(heights)) == 3
    top = moment_of(memory, peaks[3])
    assert top.by_line[0].group.label == line_of("# pairs")
    assert top.largest[0].requested_bytes == 400 * 2100 * 4 * 4, "boxes, anchors, corners, floats"
    assert (
        growth_between(memory, peaks[2], memory, peaks[3])
        .rows[0]
        .label.startswith(line_of("# pairs"))
    )


def test_an_evaluation_that_collects_is_told_by_its_line_and_goes_back(
    job: tuple[RecordedMemory, dict[str, list[int]]],
) -> None:
    memory, marks = job
    first, *_, last, after = (entries - 1 for entries in marks["eval"])
    grown = growth_between(memory, first, memory, last)
    assert grown.rows[0].label.startswith(line_of("# collects"))
    assert grown.rows[0].bytes == 12 * MIB
    # The copy of each turn replaces the one before: one block, not twelve.
    assert grown.rows[0].after_blocks == 1
    back = growth_between(memory, marks["steps"][-1] - 1, memory, after)
    assert back.after_bytes == back.before_bytes
