"""A call that says nothing more is a real run without parameters."""

from __future__ import annotations

from vramscope.commands.call import Call


def test_the_defaults_are_a_run_for_real() -> None:
    call = Call()
    assert call.params is None
    assert not call.dry_run
    assert call.step == 0
