"""Recorded windows are replayed under other settings, one at a time, whatever is in them."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import logging
import time
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.support.judge_rig import RUN, START_NS, JudgeRig, with_a_rig
from tests.support.server_app import server_app
from vramscope_protocol.messages import SnapshotBegin
from vramscope_server.findings import settings_trials
from vramscope_server.findings.settings_trials import SettingsTrials

TRACE = Path(__file__).parents[2] / "data/traces/graphs__default.pickle.gz"
WINDOW = {"id": "w1", "state": "complete", "mode": "alloc", "rank": 0, "taken_ns": START_NS}


def trials_of(rig: JudgeRig, data: bytes) -> SettingsTrials:
    def open_now(_name: str) -> BinaryIO:
        return io.BytesIO(data)

    return SettingsTrials(rig.evidence, open_now)


async def ended(trials: SettingsTrials) -> None:
    while trials.is_busy:
        await asyncio.sleep(0.01)


async def look_into(rig: JudgeRig, trials: SettingsTrials, **window: Any) -> None:
    rig.steps(0)
    rig.evidence.take_snapshot(RUN, WINDOW | {"device": None} | window)
    trials.begin_next()
    trials.begin_next()  # one at a time
    await ended(trials)
    await trials.stop()


@with_a_rig
async def test_what_was_tried_becomes_evidence_best_first(rig: JudgeRig) -> None:
    trials = trials_of(rig, TRACE.read_bytes())
    await look_into(rig, trials)
    run = rig.evidence.run(RUN)
    assert run is not None
    found = run.ranks[0].trials
    assert len(found) > 5
    assert [trial.is_recorded for trial in found].count(True) == 1
    assert rig.evidence.windows == {}
    trials.begin_next()
    assert not trials.is_busy


@with_a_rig
async def test_what_the_window_asked_for_is_known_before_it_was_replayed(rig: JudgeRig) -> None:
    trials = trials_of(rig, TRACE.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings_trials, "MOST_REPLAYED", 3)
        await look_into(rig, trials)
    run = rig.evidence.run(RUN)
    assert run is not None
    window = run.ranks[0].window
    assert window is not None
    assert run.ranks[0].trials == ()
    assert window.layout.reserved_bytes == 248 << 20
    assert window.requests is not None
    assert (window.requests.count, window.requests.largest.bytes) == (147, 32 << 20)
    assert window.requests.largest.place == "train.py:72 graphs"


@with_a_rig
async def test_a_window_that_cannot_be_replayed_is_passed_over(rig: JudgeRig) -> None:
    logger = logging.getLogger("vramscope.findings")
    logger.setLevel(logging.INFO)
    try:
        await look_into(rig, trials_of(rig, b"no pickle"))
        await look_into(rig, trials_of(rig, TRACE.read_bytes()), device=7)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(settings_trials, "MOST_REPLAYED", 3)
            await look_into(rig, trials_of(rig, TRACE.read_bytes()))
            patch.setattr(settings_trials, "read_snapshot", lambda *_a, **_k: 1 // 0)
            await look_into(rig, trials_of(rig, b""))
    finally:
        logger.setLevel(logging.NOTSET)
    run = rig.evidence.run(RUN)
    assert run is not None
    assert run.ranks[0].trials == ()


@with_a_rig
async def test_a_run_that_is_gone_meanwhile_takes_nothing(rig: JudgeRig) -> None:
    trials = trials_of(rig, TRACE.read_bytes())
    rig.steps(0)
    rig.evidence.take_snapshot(RUN, WINDOW | {"device": None})
    rig.evidence.forget(RUN)
    trials.begin_next()
    await ended(trials)
    assert rig.evidence.runs() == []
    await trials.stop()


def test_a_window_that_an_agent_sends_is_looked_into(tmp_path: Path) -> None:
    raw = gzip.decompress(TRACE.read_bytes())
    packed = gzip.compress(raw, 1)
    digest = hashlib.sha256(raw).hexdigest()
    begin = SnapshotBegin("w1", time.time_ns(), len(raw), len(packed), digest, mode="alloc")
    with server_app(tmp_path) as server, server.agent() as agent:
        agent.steps(10)
        agent.snapshot(begin, packed)
        evidence = server.context.evidence

        def tried() -> bool:
            run = evidence.run(agent.run.id)
            return run is not None and run.ranks[0].trials != ()

        server.wait_until(tried, 30)
