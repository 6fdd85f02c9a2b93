from __future__ import annotations

from tests.support.server_app import ServerApp
from tests.support.wire_ooms import wire_oom

RUN = "0123456789ab"


def test_the_newest_comes_first(server: ServerApp) -> None:
    with server.agent() as agent:
        for number in (1, 3, 2):
            agent.oom(*wire_oom(f"o{number}", time_ns=number))
    found = server.get(f"/api/v1/runs/{RUN}/ooms")["ooms"]
    assert [row["id"] for row in found] == ["o3", "o2", "o1"]
    server.get_error("/api/v1/runs/nope/ooms", 404)


def test_one_is_given_whole_with_its_verdict(server: ServerApp) -> None:
    begin, data = wire_oom()
    with server.agent() as agent:
        agent.oom(begin, data)
    found = server.get("/api/v1/ooms/o1")
    assert found["report"]["counters"]["num_ooms"] == 1
    assert found["finding"]["kind"] == "oom"
    assert found["finding"]["summary"] == found["summary"]
    assert found["finding"]["remedies"]
    assert found["siblings"] == []
    server.get_error("/api/v1/ooms/nope", 404)


def test_it_takes_a_token_and_a_frames_token_sees_its_own_run_only(server: ServerApp) -> None:
    with server.agent() as agent, server.agent(run_id="fedcba987654", run="b") as other:
        agent.oom(*wire_oom())
        begin, data = wire_oom("o2", run="fedcba987654")
        other.oom(begin, data)
        assert server.client.get("/api/v1/ooms/o1").status_code == 401
        made = server.post(f"/api/v1/runs/{RUN}/frames", {}).json()
        headers = {"authorization": f"Bearer {made['token']}"}
        assert server.client.get("/api/v1/ooms/o1", headers=headers).status_code == 200
        assert server.client.get("/api/v1/ooms/o2", headers=headers).status_code == 403
        assert server.client.get("/api/v1/ooms/nope", headers=headers).status_code == 403
