"""A leak is seen in a recording by the line that allocates it; a flat job shows none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.made_moments import (
    FORWARD_STACK,
    MIB,
    OPTIMIZER_STACK,
    Frame,
    block,
    entry,
    last_steps,
    memory,
    recorded,
    segment,
)
from vramscope_analysis.diagnosis.snapshot_growth import growing_sources, snapshot_growth
from vramscope_analysis.moments.recorded_memory import RecordedMemory

LOG: Frame = ("/home/ada/train.py", 12, "log")


def keeping(
    steps: int, stack: Sequence[Frame], *, most: int = 1000, size: int = MIB
) -> RecordedMemory:
    """Each step keeps one more block of this source, up to a bound."""
    entries = [entry("segment_alloc", 0, 2 * steps * MIB, time_us=1)]
    kept = min(steps, most)
    for step in range(kept):
        entries.append(entry("alloc", step * MIB, size, time_us=100 * step + 50, stack=stack))
    blocks = [block(size, size, stack=stack)] * kept
    rest = block((2 * steps - kept) * MIB)
    ends = [(step, 100 * step + 90) for step in range(steps)]
    return memory(entries, [segment(0, [*blocks, rest])], told_steps=ends)


def test_a_recorded_leak_is_told_with_its_line_and_speed() -> None:
    (finding,) = snapshot_growth(last_steps())
    assert finding.summary == "Grows by 2.0 MiB per step at train.py:56, at each of 8 step ends."
    assert (finding.kind, finding.severity, finding.stage) == ("leak", "warning", "suspected")
    assert (finding.culprits[0].line, finding.subject) == (56, "train.py:56")
    assert finding.culprits[0].bytes_per_step == pytest.approx(2 * MIB, rel=0.01)


def test_without_stacks_the_size_tells_it_and_no_line_is_made_up() -> None:
    (finding,) = snapshot_growth(recorded("leak__default"))
    assert finding.summary == (
        "Grows by 2.0 MiB per step at each of 12 step ends; recorded without stacks."
    )
    assert finding.culprits == ()
    assert finding.evidence["counts_at_looks"][-1] - finding.evidence["counts_at_looks"][0] == 37


@pytest.mark.parametrize(
    "name", ["fixed__default", "varlen__default", "conv__default", "unet__gc60"]
)
def test_recorded_jobs_that_do_not_leak_show_none(name: str) -> None:
    assert snapshot_growth(recorded(name)) == []


def test_a_list_of_the_jobs_own_is_named() -> None:
    (finding,) = snapshot_growth(keeping(10, [LOG]))
    assert finding.subject == "train.py:12"
    assert finding.culprits[0].function == "log"
    (growth,) = growing_sources(keeping(10, [LOG]))
    assert (growth.bytes_at, growth.steps) == (tuple(n * MIB for n in range(3, 11)), 7)


def test_what_fills_up_stays_constant_or_is_short_is_none() -> None:
    assert snapshot_growth(keeping(20, [LOG], most=8)) == []
    assert snapshot_growth(keeping(5, [LOG])) == []
    assert snapshot_growth(keeping(10, OPTIMIZER_STACK)) == []  # more state for more parameters
    assert snapshot_growth(keeping(10, [LOG], size=512)) == []
    assert len(snapshot_growth(keeping(10, FORWARD_STACK))) == 1
    assert snapshot_growth(memory((), [segment(0, [block(MIB, MIB)])])) == []
