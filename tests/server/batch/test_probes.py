"""A probe that a server has left behind is set back by the next one."""

from __future__ import annotations

from pathlib import Path

from tests.support.batch_server import PATH, answer, can_resize, train
from tests.support.server_app import ServerApp, server_app


def state_of(server: ServerApp) -> str:
    probing = server.get(PATH)["probing"]
    return "" if probing is None else probing["state"]


def begun(server: ServerApp) -> None:
    with can_resize(server.agent()) as agent:
        train(agent, [8] * 12)
        assert server.post(f"{PATH}/probe", {"batch_size": 16}).status_code == 202
        answer(agent)
        answer(agent)
        server.wait_until(lambda: state_of(server) == "watching")


def test_the_next_server_sets_it_back_when_the_rank_is_there(tmp_path: Path) -> None:
    with server_app(tmp_path) as server:
        begun(server)
    with server_app(tmp_path) as server:
        assert state_of(server) == "going_back"
        with can_resize(server.agent()) as agent:
            back = answer(agent)
            assert (back.name, back.params["batch_size"], back.dry_run) == (
                "set_batch_size",
                8,
                False,
            )
            server.wait_until(lambda: state_of(server) == "done")
    with server_app(tmp_path) as server:
        assert state_of(server) == ""  # it is back, and nobody sets it back twice
