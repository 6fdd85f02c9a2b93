"""A line is armed at once and runs later, as code of the program's own main module."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.attach_targets import attach_target
from vramscope.injection import InjectionError
from vramscope.injection.line_pages import LINE_BYTES
from vramscope.injection.pending_call import arm_pending_call
from vramscope.injection.process_status import read_process_status

ON_MAIN = b"import threading\ncounted += threading.current_thread() is threading.main_thread()\n"


def test_it_runs_on_the_main_thread_of_the_program(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        assert arm_pending_call(target.interpreter, ON_MAIN) > 0
        target.end_unharmed(1)


def test_the_longest_line(tmp_path: Path) -> None:
    line = b"counted += 1 #"
    with attach_target(tmp_path, "working", "python") as target:
        arm_pending_call(target.interpreter, line.ljust(LINE_BYTES - 1, b"x"))
        with pytest.raises(ValueError, match="less than 1024"):
            arm_pending_call(target.interpreter, line.ljust(LINE_BYTES, b"x"))
        target.end_unharmed(1)


def test_another_process_with_the_same_number_is_not_touched(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        older = replace(
            target.interpreter, started_ticks=read_process_status(target.pid).started_ticks - 1
        )
        with pytest.raises(InjectionError, match="another one") as caught:
            arm_pending_call(older, b"counted += 1\n")
        assert caught.value.kind == "gone"
        target.end_unharmed(0)
