"""Policies over REST: who may see them, who may change them, and what is told when it is wrong."""

from __future__ import annotations

from typing import Any

from tests.support.made_policies import GIB, WHEN, policy_body
from tests.support.server_app import OWNER, ServerApp

PATH = "/api/v1/policies"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def make(server: ServerApp, **changes: Any) -> Any:
    response = server.post(PATH, policy_body(**changes))
    assert response.status_code == 201, response.text
    return response.json()


def test_made_changed_switched_and_deleted(server: ServerApp) -> None:
    assert server.get(PATH) == {"policies": [], "most": 64}
    made = make(server)
    assert (made["is_on"], made["mode"], made["created_by"]) == (False, "dry_run", "owner")
    assert made["when"] == WHEN | {"ranks": "any"}
    assert server.get(PATH)["policies"] == [made]
    body = policy_body(hold={"steps": 5}, mode="act", every_s=90)
    changed = server.client.put(f"{PATH}/{made['id']}", json=body, headers=OWNER).json()
    assert (changed["for"], changed["mode"], changed["every_s"]) == ({"steps": 5}, "act", 90)
    assert server.post(f"{PATH}/{made['id']}/on", None).json()["is_on"] is True
    assert server.get(f"{PATH}/{made['id']}")["is_on"] is True
    assert server.post(f"{PATH}/{made['id']}/off", None).json()["is_on"] is False
    deleted = server.client.delete(f"{PATH}/{made['id']}", headers=OWNER)
    assert deleted.json() == {"deleted": made["id"]}
    assert server.get_error(f"{PATH}/{made['id']}", 404)["code"] == "not_found"
    rows = server.get("/api/v1/audit")["audit"]
    assert [row["name"] for row in rows] == [
        "policy_delete", "policy_off", "policy_on", "policy_change", "policy_create",
    ]  # fmt: skip
    assert {(row["who"], row["origin"], row["address"]) for row in rows} == {
        ("owner", "api", "testclient")
    }


def test_viewers_see_and_do_not_change(server: ServerApp) -> None:
    made = make(server)
    viewer = bearer(server.make_token("view"))
    for path in ("", f"/{made['id']}", f"/{made['id']}/firings"):
        assert server.client.get(PATH + path, headers=viewer).status_code == 200
    attempts = [
        server.client.post(PATH, json=policy_body(name="x"), headers=viewer),
        server.client.put(f"{PATH}/{made['id']}", json=policy_body(), headers=viewer),
        server.client.post(f"{PATH}/{made['id']}/on", headers=viewer),
        server.client.post(f"{PATH}/{made['id']}/off", headers=viewer),
        server.client.delete(f"{PATH}/{made['id']}", headers=viewer),
    ]
    for refused in attempts:
        assert refused.status_code == 403
        assert "vramscope token create --scope view,control" in refused.json()["error"]["message"]
    assert server.get(PATH)["policies"] == [made]


def test_an_agent_does_not_even_see_them(server: ServerApp) -> None:
    agent = bearer(server.make_token("agent"))
    assert server.client.get(PATH, headers=agent).status_code == 403
    assert server.client.get(PATH).status_code == 401


def test_a_frame_of_one_run_does_not_see_those_of_others(server: ServerApp) -> None:
    with server.agent():
        made = server.post("/api/v1/runs/train/frames", {"scopes": ["control"]})
    assert made.status_code == 201, made.text
    frame = bearer(made.json()["token"])
    assert server.client.get(PATH, headers=frame).status_code == 403
    assert server.client.post(PATH, json=policy_body(), headers=frame).status_code == 403


def test_what_is_wrong_is_said(server: ServerApp) -> None:
    wrong = [
        (policy_body(every_s=1), 400, "Expected `float` >= 10"),
        (policy_body(then={"command": "x"}), 400, "no command named 'x'"),
        (policy_body(then={"command": "stop"}), 400, "allow_training: expected true"),
        ([], 400, "policy: Expected `object`, got `array`"),
    ]
    for body, status, message in wrong:
        response = server.post(PATH, body)
        assert (response.status_code, response.json()["error"]["code"]) == (status, "bad_request")
        assert message in response.json()["error"]["message"]
    make(server)
    assert server.post(PATH, policy_body()).status_code == 409
    assert server.get(PATH)["policies"] != []


def test_a_body_that_is_no_json(server: ServerApp) -> None:
    for content in (b"{", b"", b'{"name": "\\ud800"}', b'{"every_s": NaN}', b"\xff"):
        response = server.client.post(PATH, content=content, headers=OWNER)
        assert (content, response.status_code) == (content, 400)
        assert "body: expected JSON" in response.json()["error"]["message"]


def test_how_things_are_is_told(server: ServerApp) -> None:
    made = make(server, is_on=True, when=WHEN | {"value": GIB})
    with server.agent() as agent:
        agent.samples(3)
        agent.wait_acked()
        (watching,) = server.wait_until(lambda: server.get(f"{PATH}/{made['id']}")["watching"])
    assert (watching["run_name"], watching["holds"], watching["ranks"]) == ("train", True, [0])
    assert watching["value"] == 2 * GIB


def test_firings_of_an_unknown_policy(server: ServerApp) -> None:
    assert server.get_error(f"{PATH}/none/firings", 404)["code"] == "not_found"
