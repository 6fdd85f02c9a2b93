"""However often one reaches in, a process has one mapping of ours, and no line is written over."""

from __future__ import annotations

from pathlib import Path

from tests.support.attach_targets import COUNT, attach_target, wait_until
from vramscope.injection import inject
from vramscope.injection.interpreter import Interpreter
from vramscope.injection.line_pages import LINE_BYTES, PLACES
from vramscope.injection.machines import machine_named
from vramscope.injection.mappings import Mapping, read_mappings
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import read_process_status

QUEUE = 32


def our_mappings(interpreter: Interpreter) -> list[Mapping]:
    machine = machine_named(interpreter.machine)
    assert machine is not None
    places = set(machine.page_places)
    return [one for one in read_mappings(interpreter.pid) if one.start in places]


def test_a_process_gets_them_once_and_the_places_are_used_in_turn(tmp_path: Path) -> None:
    lines = PLACES + 3
    with attach_target(tmp_path, "working", "python") as target:
        interpreter = target.interpreter
        assert our_mappings(interpreter) == []
        for _ in range(lines):
            inject(interpreter, COUNT)
        (mapping,) = our_mappings(interpreter)
        assert (mapping.permissions, mapping.path) == ("rw-p", "")
        assert mapping.end - mapping.start == LINE_BYTES * (1 + PLACES)
        target.end_unharmed(lines)


def test_lines_that_wait_are_not_written_over(tmp_path: Path) -> None:
    assert PLACES > QUEUE
    with attach_target(tmp_path, "waiting", "pause") as target:
        wait_until(lambda: read_process_status(target.pid).state == "S")
        interpreter = target.interpreter
        for number in range(30):
            inject(interpreter, b"number = %d\n" % number)
        (mapping,) = our_mappings(interpreter)
        with TargetMemory(target.pid) as memory:
            lines = [
                memory.read_text(mapping.start + LINE_BYTES * (1 + place)) for place in range(30)
            ]
    assert lines == [b"number = %d\n" % number for number in range(30)]
