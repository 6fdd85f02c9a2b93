"""Who does not want to hear of a finding does not, for as long as was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import open_store
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_server.findings import mutes as mutes_module
from vramscope_server.findings.mutes import Mutes
from vramscope_server.findings.record import FindingRecord, opened
from vramscope_server.store import findings
from vramscope_server.store.store import Store

NOW_NS = 1_000


class Names:
    """Two runs of one job and one of another."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        return {"name": {"run-a": "train", "run-b": "train"}.get(run_id, "other")}


def record(run_id: str = "run-a", subject: str = "train.py:5", kind: str = "leak") -> FindingRecord:
    return opened(run_id, Finding(kind, "info", "It grows.", subject=subject), 0, 1)


def on_a_store(
    test: Callable[[Store, Mutes], Coroutine[Any, Any, None]],
) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        async def go() -> None:
            store = open_store(tmp_path)
            try:
                await test(store, Mutes(store, Names(), lambda: NOW_NS))
            finally:
                store.close()

        asyncio.run(go())

    run.__name__ = test.__name__
    return run


async def stored(store: Store, *records: FindingRecord) -> FindingRecord:
    await store.write(lambda c: findings.put(c, records))
    return records[0]


@on_a_store
async def test_for_a_day(store: Store, mutes: Mutes) -> None:
    one = await stored(store, record())
    muted = await mutes.mute(one, "day", "known", "ann")
    assert muted == {
        "until": "day",
        "reason": "known",
        "by": "ann",
        "muted_ns": NOW_NS,
        "until_ns": NOW_NS + 86_400 * 10**9,
    }
    kept = await store.read(lambda c: findings.get(c, one.id))
    assert kept is not None
    assert kept.muted == muted == one.muted
    assert mutes.of(record()) is None, "this finding, not the next one"
    # Bringing the finding up to date does not take it back, whichever server does it.
    await stored(store, record())
    kept = await store.read(lambda c: findings.get(c, one.id))
    assert kept is not None
    assert kept.muted == muted


@on_a_store
async def test_for_the_run(store: Store, mutes: Mutes) -> None:
    one = await stored(store, record())
    muted = await mutes.mute(one, "run", "known", "ann")
    assert mutes.of(record()) == muted
    assert mutes.of(record("run-b")) is None
    assert mutes.of(record(subject="train.py:6")) is None
    later = Mutes(store, Names(), lambda: NOW_NS)
    later.learn(one)
    assert later.of(record()) == muted
    await later.unmute(one)
    assert (later.of(record()), one.muted) == (None, None)


@on_a_store
async def test_a_line_in_every_run_of_the_name(store: Store, mutes: Mutes) -> None:
    one = await stored(store, record())
    muted = await mutes.mute(one, "line", "a cache", "ann")
    after_restart = Mutes(store, Names(), lambda: NOW_NS)
    await after_restart.start()
    for each in (mutes, after_restart):
        assert each.of(record("run-b")) == muted
        assert each.of(record("run-c")) is None
        assert each.of(record("run-b", kind="retention")) is None
    await after_restart.unmute(record("run-b"))
    again = Mutes(store, Names(), lambda: NOW_NS)
    await again.start()
    assert again.of(record("run-b")) is None


@on_a_store
async def test_what_cannot_be_muted(store: Store, mutes: Mutes) -> None:
    with pytest.raises(VramscopeError, match="no line yet") as caught:
        await mutes.mute(record(subject=""), "line", "known", "ann")
    assert caught.value.code == BAD_REQUEST
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutes_module, "MAX_RULES", 0)
        with pytest.raises(VramscopeError, match="at most 0"):
            await mutes.mute(record(), "line", "known", "ann")
