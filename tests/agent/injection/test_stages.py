"""The list of stages is the list of what an injection passes."""

from __future__ import annotations

from pathlib import Path

from tests.support.attach_targets import COUNT, attach_target
from vramscope.injection import inject
from vramscope.injection.stages import STAGES, no_stage


def test_all_are_passed_in_order_and_no_others(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        passed: list[str] = []
        inject(target.interpreter, COUNT, at_stage=passed.append)
        assert tuple(passed) == STAGES
        passed.clear()
        inject(target.interpreter, COUNT, at_stage=passed.append)
        assert set(STAGES) - set(passed) == {
            *("before system call", "in system call", "after system call"),
        }
        target.end_unharmed(2)


def test_nothing_happens_at_a_stage() -> None:
    no_stage("stopped")
