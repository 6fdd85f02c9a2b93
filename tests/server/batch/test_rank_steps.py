"""What the advice rests on is read from the store: of the newest life, with what others hold."""

from __future__ import annotations

import numpy as np

from tests.support.batch_server import peak, train
from tests.support.scripted_agent import GIB
from tests.support.server_app import ServerApp
from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_server.batch.rank_steps import RankSteps

RUN = "0123456789ab"


def reader(server: ServerApp) -> RankSteps:
    return RankSteps(server.context.store, server.context.registry)


def test_steps_and_the_device_are_there(server: ServerApp) -> None:
    with server.agent() as agent:
        train(agent, [8] * 5)
        found = reader(server).read(RUN, 0, 5)
    assert found.steps.number is not None
    assert found.steps.number.tolist() == [1, 2, 3, 4, 5]
    assert set(found.steps.numbers("step.peak_allocated_bytes")) == {peak(8)}
    assert found.total_bytes == 8 * GIB
    assert np.isnan(found.steps.numbers("step.peak_active_bytes")).all()


def test_what_others_hold_is_taken_off_the_limit(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.event("processes", processes=[{"pid": 1, "bytes": GIB}, {"pid": 4242, "bytes": 9}])
        agent.event("outside", parts=[{"name": "CUDA context", "bytes": GIB // 2}])
        train(agent, [8] * 3)
        found = reader(server).read(RUN, 0, 3)
    assert allocator_limit(found) == 8 * GIB - GIB - GIB // 2


def test_a_phase_is_known_with_its_step(server: ServerApp) -> None:
    with server.agent() as agent:
        train(agent, [8] * 3)
        agent.event("phase", phase="eval", id=1, start_ns=1)
        agent.event("phase", phase="backward", id=2, start_ns=1)
        agent.event("phase", phase=7)
        agent.wait_acked()
        found = reader(server).read(RUN, 0, 3)
    assert [stretch.name for stretch in found.stretches] == ["eval"]


def test_a_rank_of_which_nothing_came_is_empty(server: ServerApp) -> None:
    with server.agent():
        found = reader(server).read(RUN, 0, None)
        other = reader(server).read(RUN, 7, 3)
    assert len(found.steps) == len(other.steps) == 0
    assert other.total_bytes is None


def test_a_life_before_is_no_evidence(server: ServerApp) -> None:
    with server.agent(life="a") as agent:
        train(agent, [8] * 5)
    with server.agent(life="b") as agent:
        train(agent, [16] * 4)
        found = reader(server).read(RUN, 0, 5)
    assert set(found.steps.numbers("step.batch_size")) == {16}
