"""The main thread is stopped when it can be, and never for another program's sake."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.attach_targets import COUNT, attach_target
from vramscope.injection import InjectionError, inject
from vramscope.injection.main_thread import MainThread, stack_of, with_main_thread
from vramscope.injection.mappings import Mapping
from vramscope.injection.ptrace import ThreadGone
from vramscope.injection.stopped_thread import BadMoment, StoppedThread


def test_a_bad_moment_is_waited_out(tmp_path: Path) -> None:
    moments = [BadMoment("first"), BadMoment("second"), None]

    def work(thread: StoppedThread) -> str:
        moment = moments.pop(0)
        if moment is not None:
            raise moment
        return "done"

    def reach(main: MainThread) -> tuple[str, bool]:
        return main.stop_for(work), main.stopped_us > 0

    with attach_target(tmp_path, "working", "python") as target:
        assert with_main_thread(target.interpreter, reach) == ("done", True)
        assert moments == []
        target.end_unharmed(0)


def test_bad_moments_without_end_are_given_up(tmp_path: Path) -> None:
    def work(thread: StoppedThread) -> None:
        raise BadMoment("it never is")

    with attach_target(tmp_path, "working", "python") as target:
        with pytest.raises(InjectionError, match="it never is") as caught:
            with_main_thread(target.interpreter, lambda main: main.stop_for(work))
        assert caught.value.kind == "busy"
        target.end_unharmed(0)


@pytest.mark.parametrize("error", [OSError("nothing is mapped there"), ThreadGone("not stopped")])
def test_of_a_process_that_goes_on_it_is_not_said_that_it_has_ended(
    tmp_path: Path, error: Exception
) -> None:
    def lose(main: MainThread) -> None:
        raise error

    with attach_target(tmp_path, "working", "python") as target:
        interpreter = target.interpreter
        with pytest.raises(InjectionError, match=f"just now .{error}") as caught:
            with_main_thread(interpreter, lose)
        assert caught.value.kind == "busy"
        target.process.kill()
        target.process.wait(10)
        with pytest.raises(InjectionError, match="has ended") as caught:
            with_main_thread(interpreter, lose)
        assert caught.value.kind == "gone"


def test_a_program_that_has_become_another_is_not_touched(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        other = replace(target.interpreter, code=bytes(16))
        with pytest.raises(InjectionError, match="another one") as caught:
            inject(other, COUNT)
        assert caught.value.kind == "gone"
        target.end_unharmed(0)


def test_becoming_another_program_in_the_middle(tmp_path: Path) -> None:
    program = f"import os\nos.execv({sys.executable!r}, ['python', '-c', 'print(1)'])\n"
    with attach_target(tmp_path, "working", "python") as target:
        interpreter = target.interpreter
        inject(interpreter, program.encode())
        assert target.process.wait(10) == 0
        with pytest.raises(InjectionError) as caught:
            inject(interpreter, COUNT)
        assert caught.value.kind == "gone"


def test_a_stack_that_is_not_its_own_is_left_alone(tmp_path: Path) -> None:
    mappings = [
        Mapping(0x1000, 0x2000, "rw-p", 0, "[heap]"),
        Mapping(0x7FFF_0000_0000, 0x7FFF_0002_0000, "rw-p", 0, "[stack]"),
    ]
    stack = stack_of(mappings)
    assert stack is not None
    assert 0x7FFE_FFFF_0000 in stack  # it may have grown since
    assert 0x1800 not in stack
    assert stack_of(mappings[:1]) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_somebody_else_may_not(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        interpreter = target.interpreter
        child = os.fork()
        if child == 0:
            os.setresuid(65534, 65534, 65534)
            try:
                inject(interpreter, COUNT)
            except InjectionError as error:
                os._exit(0 if error.kind == "permission" else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        target.end_unharmed(0)
