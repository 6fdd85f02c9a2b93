"""A main thread that is blocked tells its Python stack, and goes on waiting."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.attach_targets import COUNT, attach_target, wait_until
from tests.support.interpreters import OfferedInterpreter, offered_interpreters
from vramscope.injection import dump_main_thread, inject
from vramscope.injection.process_status import read_process_status

PYTHONS = [one for one in offered_interpreters() if one.version < (3, 14)]


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_innermost_call_first_and_nothing_is_left_open(
    python: OfferedInterpreter, tmp_path: Path
) -> None:
    with attach_target(tmp_path, "waiting", "read", python.executable) as target:
        wait_until(lambda: read_process_status(target.pid).state == "S")
        files = sorted(os.listdir(f"/proc/{target.pid}/fd"))
        text = dump_main_thread(target.interpreter)
        assert sorted(os.listdir(f"/proc/{target.pid}/fd")) == files
        if text is None:
            pytest.skip("this build does not offer the function")
        lines = text.splitlines()
        assert lines[0] == "Stack (most recent call first):"
        assert lines[1].endswith(" in read")
        assert [line.rpartition(" in ")[2] for line in lines[-2:]] == ["main", "<module>"]
        inject(target.interpreter, COUNT)
        target.end_unharmed(1)


def test_nothing_is_stopped_where_the_function_is_not_offered(tmp_path: Path) -> None:
    with attach_target(tmp_path, "working", "python") as target:
        found = target.interpreter
        state = {name: symbol for name, symbol in found.symbols.items() if "GILState" not in name}
        assert dump_main_thread(replace(found, symbols=state)) is None
        target.end_unharmed(0)
