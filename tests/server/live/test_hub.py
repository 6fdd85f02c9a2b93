from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.server_rows import make_rows
from vramscope_server.live import payload
from vramscope_server.live.hub import Hub
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.settings import Limits


class FakeRegistry:
    def __init__(self) -> None:
        self.step = 0

    def runs(self) -> list[dict[str, Any]]:
        return [{"id": "r1", "step": self.step}]

    def run(self, run_id: str) -> dict[str, Any] | None:
        return {"id": "r1", "step": self.step, "ranks": []} if run_id == "r1" else None


class Follower:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.keys: list[str | None] = []

    def __call__(self, body: bytes, key: str | None) -> None:
        self.bodies.append(body)
        self.keys.append(key)

    @property
    def payloads(self) -> list[Any]:
        return [json.loads(body) for body in self.bodies]

    @property
    def kinds(self) -> list[str]:
        return [body["kind"] for body in self.payloads]


ROWS = make_rows(time_ns=[1], step=[1], a=[1], b=[2])


def on_loop(scenario: Callable[[Hub, FakeRegistry], None], limits: Limits | None = None) -> None:
    async def main() -> None:
        registry = FakeRegistry()
        hub = Hub(registry, limits or Limits())
        scenario(hub, registry)
        hub.close()

    asyncio.run(main())


def test_events_of_every_run_are_handed_to_who_wants_them() -> None:
    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        taken: list[tuple[str, str]] = []
        hub.follow_events(lambda run_id, event: taken.append((run_id, event["kind"])))
        hub.publish_event("r1", {"kind": "oom", "rank": 1})
        hub.publish_event("nobody follows it", {"kind": "mark", "rank": 0})
        assert taken == [("r1", "oom"), ("nobody follows it", "mark")]

    on_loop(scenario)


def test_a_follower_gets_the_present_state_first_and_then_what_it_follows() -> None:
    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        follower = Follower()
        hub.follow_run("r1", ["a"], [0], follower)
        hub.publish_samples("r1", 0, ROWS)
        hub.publish_samples("r1", 1, ROWS)
        hub.publish_steps("r1", 0, ROWS, LifeOffset(1, 412))
        hub.publish_event("r1", {"kind": "oom", "rank": 1})
        hub.publish_status("r1", 1, {"rate_hz": 10})
        hub.publish_command("r1", {"id": "c"})
        hub.publish_finding("r1", {"id": "f"})
        hub.publish_snapshot("r1", {"id": "s"})
        hub.publish_oom("r1", {"id": "o"})
        hub.publish_samples("another run", 0, ROWS)
        kinds = ["run", "samples", "steps", "event", "status", "command", "finding"]
        kinds += ["snapshot", "oom"]
        assert follower.kinds == kinds
        assert follower.payloads[1]["columns"] == {"step": [1], "a": [1]}
        steps = follower.payloads[2]
        assert (steps["step"], steps["life"], steps["step_offset"]) == ([1], 1, 412)
        assert follower.keys == [
            *("run", None, None, None, "status 1", "command c", "finding f"),
            "snapshot s",
            "oom o",
        ]

    on_loop(scenario)


def test_statuses_of_all_runs_go_also_to_who_listens_to_agents() -> None:
    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        taken: list[tuple[str, int, dict[str, Any]]] = []
        hub.follow_statuses(lambda *status: taken.append(status))
        hub.publish_status("nobody follows it", 1, {"rate_hz": 10})
        assert taken == [("nobody follows it", 1, {"rate_hz": 10})]

    on_loop(scenario)


def test_evidence_of_all_runs_goes_to_who_judges() -> None:
    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        taken: list[tuple[Any, ...]] = []

        class Taker:
            def __getattr__(self, name: str) -> Callable[..., None]:
                return lambda *told: taken.append((name, *told))

        hub.follow_evidence(Taker())
        life = LifeOffset(1, 40)
        hub.publish_samples("nobody follows it", 1, ROWS)
        hub.publish_steps("nobody follows it", 1, ROWS, life)
        hub.publish_event("nobody follows it", {"kind": "mark"})
        hub.publish_command("nobody follows it", {"id": "c"})
        hub.publish_snapshot("nobody follows it", {"id": "s"})
        hub.publish_status("nobody follows it", 1, {"rate_hz": 10})
        run = "nobody follows it"
        assert taken == [
            ("take_samples", run, 1, ROWS),
            ("take_steps", run, 1, ROWS, life),
            ("take_event", run, {"kind": "mark"}),
            ("take_command", run, {"id": "c"}),
            ("take_snapshot", run, {"id": "s"}),
            ("take_status", run, 1, {"rate_hz": 10}),
        ]

    on_loop(scenario)


def test_an_unknown_run_cannot_be_followed() -> None:
    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        follower = Follower()
        assert hub.follow_run("r2", [], None, follower) is None
        assert follower.bodies == []

    on_loop(scenario)


def test_rows_are_encoded_once_per_set_of_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[tuple[str, ...]] = []
    original = payload.samples_payload

    def counting(rank: int, rows: Any, fields: Any) -> bytes:
        encoded.append(tuple(fields))
        return original(rank, rows, fields)

    monkeypatch.setattr(payload, "samples_payload", counting)

    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        followers = [Follower() for _ in range(4)]
        for follower in followers[:3]:
            hub.follow_run("r1", ["a"], None, follower)
        hub.follow_run("r1", ["b"], None, followers[3])
        hub.publish_samples("r1", 0, ROWS)
        assert sorted(encoded) == [("a",), ("b",)]
        assert followers[0].bodies[1] is followers[1].bodies[1] is followers[2].bodies[1]

    on_loop(scenario)


def test_nothing_is_encoded_for_a_run_that_nobody_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> bytes:
        raise AssertionError("encoded for nobody")

    for name in ("samples_payload", "event_payload", "status_payload", "command_payload"):
        monkeypatch.setattr(payload, name, refuse)

    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        hub.publish_samples("r1", 0, ROWS)
        hub.publish_event("r1", {})
        hub.publish_status("r1", 0, {})
        hub.publish_command("r1", {"id": "c"})
        hub.run_changed("r1")

    on_loop(scenario)


def test_who_has_left_hears_nothing_more() -> None:
    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        follower, stays = Follower(), Follower()
        subscription = hub.follow_run("r1", ["a"], None, follower)
        hub.follow_run("r1", ["a"], None, stays)
        assert subscription is not None
        hub.unfollow(subscription)
        hub.unfollow(subscription)
        hub.publish_samples("r1", 0, ROWS)
        assert follower.kinds == ["run"]
        assert stays.kinds == ["run", "samples"]

    on_loop(scenario)


def test_a_follower_may_leave_while_it_is_served() -> None:
    def scenario(hub: Hub, _registry: FakeRegistry) -> None:
        stays = Follower()

        def leave(_body: bytes, key: str | None) -> None:
            if key is None and subscription is not None:
                hub.unfollow(subscription)

        subscription = hub.follow_run("r1", ["a"], None, leave)
        hub.follow_run("r1", ["a"], None, stays)
        hub.publish_samples("r1", 0, ROWS)
        assert stays.kinds == ["run", "samples"]

    on_loop(scenario)


def test_many_changes_of_a_run_become_few_pieces_of_news_and_the_last_is_told() -> None:
    async def scenario() -> None:
        registry = FakeRegistry()
        hub = Hub(registry, Limits(run_interval_s=0.03, run_list_interval_s=0.03))
        one, all_runs = Follower(), Follower()
        hub.follow_run("r1", [], None, one)
        hub.follow_runs(all_runs)
        for step in range(1, 501):
            registry.step = step
            hub.run_changed("r1")
            await asyncio.sleep(0)
        deadline = asyncio.get_running_loop().time() + 5
        while (
            one.payloads[-1]["run"]["step"] != 500
            or all_runs.payloads[-1]["runs"][0]["step"] != 500
        ):
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.005)
        assert len(one.bodies) < 20
        assert len(all_runs.bodies) < 20
        assert set(one.keys) == {"run"}
        assert set(all_runs.keys) == {"runs"}
        hub.close()

    asyncio.run(scenario())


def test_the_list_of_runs_can_be_left() -> None:
    async def scenario() -> None:
        hub = Hub(FakeRegistry(), Limits(run_list_interval_s=0.0))
        follower = Follower()
        subscription = hub.follow_runs(follower)
        hub.unfollow(subscription)
        hub.unfollow(subscription)
        hub.run_changed("r1")
        await asyncio.sleep(0.01)
        assert follower.kinds == ["runs"]
        hub.close()

    asyncio.run(scenario())
