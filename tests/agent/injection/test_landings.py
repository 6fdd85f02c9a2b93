"""The instructions that are jumped to exist in the C libraries of this machine."""

from __future__ import annotations

import os

import pytest

from vramscope.injection.errors import InjectionError
from vramscope.injection.landings import find_landings
from vramscope.injection.machines import machine_named
from vramscope.injection.mappings import read_mappings
from vramscope.injection.memory import TargetMemory


def test_places_hold_the_instructions() -> None:
    machine = machine_named(os.uname().machine)
    assert machine is not None
    with TargetMemory(os.getpid()) as memory:
        found = find_landings(memory, read_mappings(os.getpid()), machine, "")
        for place, codes in (
            (found.restorer, machine.restorer_code),
            (found.system_call, machine.system_call_code),
            (found.store_result, machine.store_result_code),
        ):
            assert not codes or any(memory.read(place, len(code)) == code for code in codes)


def test_without_a_known_c_library_there_are_none() -> None:
    machine = machine_named(os.uname().machine)
    assert machine is not None
    others = [mapping for mapping in read_mappings(os.getpid()) if "math" in mapping.name]
    with TargetMemory(os.getpid()) as memory, pytest.raises(InjectionError, match="C library"):
        find_landings(memory, others, machine, "")
