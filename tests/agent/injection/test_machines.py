"""Both processors are known by the name that uname gives them, and no other."""

from __future__ import annotations

import pytest

from vramscope.injection.machines import machine_named


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_known(name: str) -> None:
    machine = machine_named(name)
    assert machine is not None
    assert machine.name == name


def test_unknown() -> None:
    assert machine_named("riscv64") is None
