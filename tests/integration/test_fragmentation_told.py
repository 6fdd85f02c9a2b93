"""From the frames of a map and a recorded window to what a reader of the API is told."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.allocator_traces import FOLDER
from tests.support.made_moments import FORWARD_STACK, MIB, entry, scope
from tests.support.made_ranks import COUNTED
from tests.support.made_segments import segment
from tests.support.recorded_map import GivenOwners, MapOfLooks, recorded_segments
from tests.support.scripted_agent import ScriptedAgent
from tests.support.server_app import ServerApp, server_app
from vramscope_protocol.messages import Event, MapWanted, SnapshotBegin
from vramscope_server.findings import board, settings_trials
from vramscope_server.maps.maps import LOOK_S
from vramscope_server.settings import Limits

pytestmark = pytest.mark.timeout(120)

GIB = 1 << 30
QUICK = Limits(judge_interval_s=0.1)
ASKS = 198 * MIB


def send_window(agent: ScriptedAgent, raw: bytes) -> None:
    """A recorded window, as an agent sends it."""
    packed = gzip.compress(raw, 1)
    digest = hashlib.sha256(raw).hexdigest()
    begin = SnapshotBegin("w1", time.time_ns(), len(raw), len(packed), digest, mode="alloc")
    agent.snapshot(begin, packed)


def say_settings(agent: ScriptedAgent, text: str = "") -> None:
    """The allocator's settings; without a text PyTorch's defaults."""
    agent.seq += 1
    agent.send(Event(agent.seq, time.time_ns(), "settings", None, "", {"text": text}))


def wait_told(
    server: ServerApp, probe: Callable[[], dict[str, Any] | None], timeout_s: float = 10.0
) -> dict[str, Any]:
    """The finding once it is as the test waits for."""
    found = server.wait_until(probe, timeout_s)
    assert found is not None
    return found


def told(server: ServerApp, agent: ScriptedAgent) -> dict[str, Any] | None:
    """The finding about pieces, if it is open."""
    found = server.get(f"/api/v1/runs/{agent.run.id}/findings", state="open")["findings"]
    return next((each for each in found if each["kind"] == "fragmentation"), None)


def recorded_steps(name: str, more: int) -> dict[str, list[int]]:
    """Steps of a recorded job, its last one repeated."""
    counted = json.loads((FOLDER / f"{name}.json").read_text())
    rows = [row for row in counted["steps"] if row[0] != "oom"]
    return {
        COUNTED[key]: [row[at] for row in rows] + [rows[-1][at]] * more
        for at, key in enumerate(counted["columns"])
        if key in COUNTED
    }


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """News of a finding are told when they come, and its end when it is missed."""
    monkeypatch.setattr(board, "_RETOLD_NS", 0)
    monkeypatch.setattr(board, "_MISSED_NS", 0)
    # A replay of the whole window goes on after the test.
    monkeypatch.setattr(settings_trials, "MOST_REPLAYED", 0)


def test_a_recorded_job_is_told_its_kind_and_what_it_asks_for(tmp_path: Path) -> None:
    """The map is asked for by the server: nobody looks at it."""
    columns = recorded_steps("varlen__default", 60)
    count = len(columns["num_ooms"])
    last = {name: column[-1:] for name, column in columns.items()}
    free = last["reserved_bytes.all.current"][0] - last["active_bytes.all.current"][0]
    raw = gzip.decompress((FOLDER / "varlen__default.pickle.gz").read_bytes())
    with server_app(tmp_path, QUICK) as server, server.agent() as agent:
        say_settings(agent)
        looked = {"cache.private_pool_bytes": [0], "cache.returnable_bytes": [free]}
        agent.samples(1, step=count, **looked)
        agent.steps(count, step=1, **columns)
        facts = wait_told(server, lambda: told(server, agent))
        assert facts["summary"] == (
            "1.0 GiB of 3.1 GiB reserved were never needed at once: they lie in pieces."
        )
        assert (facts["evidence"]["shape"], facts["evidence"]["pools"]) == ("", [])
        assert agent.wait_map_wanted() == MapWanted(LOOK_S, full=True)
        agent.map_frame(MapOfLooks().frame(recorded_segments("varlen__default"), step=count))
        agent.steps(1, step=count + 1, **last)
        mapped = wait_told(server, lambda: with_evidence(server, agent, "shape"))
        assert (mapped["id"], mapped["evidence"]["shape"]) == (facts["id"], "size-mix")
        assert "Size-mix: 3.1 GiB free are cut into 65 pieces" in mapped["detail"]
        assert mapped["detail"].endswith("Without a flush 162 MiB can be had now in one piece.")
        large = mapped["evidence"]["pools"][0]
        assert (large["pool"], large["stream_name"]) == ("large", "the default stream")
        send_window(agent, raw)
        agent.steps(1, step=count + 2, **last)
        asked = wait_told(server, lambda: with_evidence(server, agent, "recorded_steps"))
        assert asked["evidence"]["largest_request_bytes"] == 169_728_000
        # At the moment of the recording at which most was reserved.
        assert "Size-mix: 1.2 GiB free are cut into 65 pieces" in asked["detail"]
        assert asked["detail"].endswith(
            "Each of 39 recorded steps asks for 24.9 MiB to 162 MiB in one piece. "
            "Without a flush 162 MiB can be had now."
        )


def with_evidence(server: ServerApp, agent: ScriptedAgent, name: str) -> dict[str, Any] | None:
    """The finding, once something is known of it."""
    found = told(server, agent)
    return found if found is not None and found["evidence"].get(name) else None


def window_of_steps(*, steps: int) -> bytes:
    """Steps that each ask for 198 MiB, as PyTorch writes them."""
    entries: list[dict[str, Any]] = []
    scopes: list[dict[str, Any]] = []
    for number in range(steps):
        for action in ("alloc", "free_requested", "free_completed"):
            at = 100 * number + 1
            entries.append(entry(action, 0, ASKS, time_us=at, stack=FORWARD_STACK))
        scopes += scope("Optimizer.step#SGD.step", 100 * number + 90, 100 * number + 99)
    return pickle.dumps(
        {
            "segments": [],
            "device_traces": [entries],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""},
            "external_annotations": scopes,
        },
        protocol=4,
    )


def test_what_the_next_step_cannot_have_is_the_headline_and_goes_when_it_had_it(
    tmp_path: Path,
) -> None:
    here = 1 << 40
    carved = [
        segment(here, "a200 f166 a200 f166 a200"),
        segment(here + GIB, "a300 f160"),
        segment(here + 2 * GIB, "a500 f95 a200"),
    ]
    reserved = 2187 * MIB
    weights = {
        each["address"]: (1, "layer.weight")
        for held in carved
        for each in held["blocks"]
        if each["state"] != "inactive"
    }
    source = MapOfLooks(GivenOwners(weights), limit_bytes=reserved + 3 * MIB)

    def steps(agent: ScriptedAgent, first: int, count: int, flushes: list[int]) -> None:
        agent.steps(
            count,
            step=first,
            **{
                "reserved_bytes.all.current": [reserved] * count,
                "active_bytes.all.current": [1600 * MIB] * count,
                "step.peak_active_bytes": [2100 * MIB] * count,
                "num_alloc_retries": flushes,
            },
        )

    with server_app(tmp_path, QUICK) as server, server.agent() as agent:
        say_settings(agent)
        agent.samples(1, step=40)
        send_window(agent, window_of_steps(steps=5))
        steps(agent, 1, 40, [*[0] * 30, *range(1, 11)])
        agent.map_frame(source.frame(carved, step=40))
        found = wait_told(server, lambda: told(server, agent), 30)
        assert found["summary"] == (
            "The next step needs 198 MiB in one piece; "
            "the largest piece is 166 MiB, of 590 MiB free."
        )
        assert found["severity"] == "warning"
        assert found["evidence"]["facts"] == [
            "Each of 5 recorded steps asks for 198 MiB in one piece, at model.py:20 forward. "
            "Without a flush 166 MiB can be had now: 5 of 5 asked for more."
        ]
        # The next steps had it, without a flush.
        steps(agent, 41, 3, [10] * 3)
        more = iter(range(44, 1000))

        def is_over() -> bool:
            steps(agent, next(more), 1, [10])
            return told(server, agent) is None

        server.wait_until(is_over, 30)
