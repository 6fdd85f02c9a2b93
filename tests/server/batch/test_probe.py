"""One probe: what it asks, when it ends, and what is said when something goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.server_commands import OWNER, answer, make_command
from vramscope_analysis.batch.probe_plan import ProbePlan
from vramscope_protocol.errors import CONFLICT, VramscopeError
from vramscope_server.batch import probe as probe_module
from vramscope_server.batch.probe import Probe, left_behind, there_id
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest, Issuer

PLAN = ProbePlan(24, 2, 16, 3, changes_global_batch=False)


class Asking:
    """Answers each command with the next state; the last one goes on."""

    def __init__(self, *states: Any) -> None:
        self.states = list(states)
        self.asked: list[CommandRequest] = []

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        self.asked.append(request)
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, VramscopeError):
            raise state
        record = make_command(id=request.id, name=request.name)
        record.answer(0, answer(state, message=f"It {state}."))
        return record


def probed(asking: Asking, *seen: bool) -> Probe:
    looks = iter([*seen, True])

    async def is_seen() -> bool:
        return next(looks)

    async def run() -> Probe:
        probe = Probe("probe-0123456789ab", "r1", PLAN, OWNER)
        await probe.run(asking, is_seen)
        return probe

    return asyncio.run(run())


def test_a_dry_run_then_there_then_a_look_then_back() -> None:
    asking = Asking("done")
    probe = probed(asking, False)
    assert (probe.state, probe.is_over) == ("done", True)
    assert [(each.dry_run, each.params) for each in asking.asked] == [
        (True, {"batch_size": 24, "accumulation": 2}),
        (False, {"batch_size": 24, "accumulation": 2}),
        (False, {"batch_size": 16, "accumulation": 3}),
    ]
    assert len({each.id for each in asking.asked}) == 3
    assert all((each.id or "").startswith(probe.id) for each in asking.asked)


def test_what_a_dry_run_refuses_is_not_done() -> None:
    asking = Asking("refused")
    probe = probed(asking)
    assert len(asking.asked) == 1
    assert (probe.state, probe.text) == ("failed", "It refused. Nothing was changed.")


def test_a_change_that_fails_is_not_set_back() -> None:
    asking = Asking("done", "failed")
    probe = probed(asking)
    assert len(asking.asked) == 2
    assert (probe.state, probe.text) == ("failed", "It failed.")


def test_a_size_that_cannot_be_set_back_is_said_loudly() -> None:
    probe = probed(Asking("done", "done", "expired"))
    assert probe.state == "failed"
    assert "The batch size is still 24: set it back by hand." in probe.text


def test_what_the_server_refuses_ends_it() -> None:
    probe = probed(Asking(VramscopeError(CONFLICT, "the run has ended")))
    assert (probe.state, probe.text) == ("failed", "the run has ended")


def test_it_goes_back_when_nothing_is_ever_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_module, "WATCH_S", 0.05)
    monkeypatch.setattr(probe_module, "_POLL_S", 0.01)
    asking = Asking("done")
    assert probed(asking, *[False] * 100).state == "done"
    assert len(asking.asked) == 3


def test_the_id_of_a_change_says_how_to_set_it_back() -> None:
    probe = Probe("probe-0123456789ab", "r1", PLAN, OWNER)
    stored = {
        "id": there_id(probe),
        "name": "set_batch_size",
        "state": "done",
        "params": PLAN.params,
    }
    assert left_behind(stored) == ("probe-0123456789ab", PLAN)
    assert left_behind({**stored, "state": "refused"}) is None
    assert left_behind({**stored, "id": "probe-0123456789ab-back"}) is None
    assert left_behind({**stored, "id": "somebody-elses"}) is None
