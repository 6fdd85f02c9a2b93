"""A framework is in one phase at a time."""

from __future__ import annotations

from tests.support.told_session import ToldSession
from vramscope.integrations.told_phase import ToldPhase


def test_entering_one_leaves_the_one_before(session: ToldSession) -> None:
    phase = ToldPhase()
    phase.enter("eval")
    phase.enter("eval")
    phase.enter("checkpoint")
    phase.leave()
    phase.leave()
    assert session.calls == ["begin eval", "end eval", "begin checkpoint", "end checkpoint"]
