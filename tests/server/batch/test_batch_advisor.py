"""Who asks often gets what was read a moment ago; a recorded window makes the answer better."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, BinaryIO

from tests.support.batch_server import train
from tests.support.server_app import ServerApp
from vramscope_analysis.batch.run_advice import RunAdvice
from vramscope_server.batch.batch_advisor import BatchAdvisor
from vramscope_server.batch.window_replays import WindowReplays

RUN = "0123456789ab"


def nothing(_snapshot: str) -> BinaryIO:
    raise OSError("expected no snapshot")


class Asked:
    """An advisor on the parts of a server, with a clock of the test's."""

    def __init__(self, server: ServerApp) -> None:
        self.now_s = 10.0
        context = server.context
        self.advisor = BatchAdvisor(
            context.store, context.registry, WindowReplays(nothing), lambda: self.now_s
        )

    def ask(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)

    def advice(self, run_id: str = RUN) -> Any:
        return self.ask(self.advisor.advise(run_id, 0.05))


def test_an_answer_is_kept_for_a_moment(server: ServerApp) -> None:
    asked = Asked(server)
    with server.agent() as agent:
        step = train(agent, [8] * 6)
        first = asked.advice()
        train(agent, [40] * 6, step)
        assert asked.advice() == first
        asked.now_s += 1.5
        later = asked.advice()
    assert isinstance(first, RunAdvice)
    assert first.deciding.model.sizes == (8,)
    assert later.deciding.model.sizes == (8, 40)


def test_sizes_that_were_seen_often_enough_are_told_by_rank(server: ServerApp) -> None:
    asked = Asked(server)
    with server.agent() as agent:
        train(agent, [8] * 6 + [16] * 2)
        assert asked.ask(asked.advisor.tried(RUN, 0.05)) == {0: frozenset({8})}
    assert asked.ask(asked.advisor.tried("unknown", 0.05)) == {}


def test_a_run_that_nobody_knows_has_no_steps(server: ServerApp) -> None:
    assert Asked(server).advice("unknown") == "no_steps"
