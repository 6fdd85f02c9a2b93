"""Findings reach the store as they are now, also when it did not take them at first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.streams import open_store
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings import finding_writer
from vramscope_server.findings.finding_writer import FindingWriter
from vramscope_server.findings.record import FindingRecord, opened
from vramscope_server.store import findings
from vramscope_server.store.database import StoreError
from vramscope_server.store.store import Store


def record() -> FindingRecord:
    return opened("run-a", Finding("leak", "info", "It grows."), 0, 1)


def on_a_store(
    test: Callable[[Store, FindingWriter], Coroutine[Any, Any, None]],
) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        async def go() -> None:
            store = open_store(tmp_path)
            try:
                await test(store, FindingWriter(store))
            finally:
                store.close()

        asyncio.run(go())

    run.__name__ = test.__name__
    return run


async def stored(store: Store) -> list[FindingRecord]:
    return await store.read(lambda c: findings.list_findings(c, "run-a"))


@on_a_store
async def test_what_is_written_is_how_it_was_when_it_was_told(
    store: Store, writer: FindingWriter
) -> None:
    one = record()
    writer.note(one)
    one.summary = "Changed, and not told yet."
    await writer.write()
    assert [each.summary for each in await stored(store)] == ["It grows."]
    await writer.write()


@on_a_store
async def test_what_is_noted_is_written_by_itself(store: Store, writer: FindingWriter) -> None:
    task = asyncio.create_task(writer.run())
    writer.note(record())
    while not await stored(store):
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task})


@on_a_store
async def test_a_later_state_is_not_undone_by_one_that_failed(
    store: Store, writer: FindingWriter
) -> None:
    one = record()
    writer.note(one)
    works = store.write

    async def refuse(_function: Any) -> None:
        one.summary = "Newer."
        writer.note(one)
        raise StoreError("disk full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write", refuse)
        await writer.write()
    assert store.write == works
    await writer.stop()
    assert [each.summary for each in await stored(store)] == ["Newer."]


@on_a_store
async def test_what_was_not_taken_is_tried_again(store: Store, writer: FindingWriter) -> None:
    async def refuse(_function: Any) -> None:
        raise StoreError("disk full")

    writer.note(record())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write", refuse)
        await writer.write()
    await writer.write()
    assert len(await stored(store)) == 1


@on_a_store
async def test_a_store_that_hangs_is_not_waited_for(store: Store, writer: FindingWriter) -> None:
    async def hang(_function: Any) -> None:
        await asyncio.Event().wait()

    writer.note(record())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "write", hang)
        patch.setattr(finding_writer, "_STOP_S", 0.01)
        await writer.stop()


@on_a_store
async def test_what_was_being_written_when_it_was_cancelled_is_written_again(
    store: Store, writer: FindingWriter
) -> None:
    begun = asyncio.Event()

    async def never(_work: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    with patch.object(store, "write", never):
        writer.note(record())
        task = asyncio.create_task(writer.run())
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
    await writer.stop()
    assert [each.kind for each in await stored(store)] == ["leak"]
