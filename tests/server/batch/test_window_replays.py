"""Windows are replayed in their own thread, each question once; a bad window is passed over."""

from __future__ import annotations

import asyncio
import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.support.made_batches import batch_rank, planned
from tests.support.made_recordings import MIB
from vramscope_analysis.batch.batch_advice import BatchAdvice, batch_advice
from vramscope_server.batch import window_replays
from vramscope_server.batch.window_replays import Window, WindowReplays, newest_window

TRACE = Path(__file__).parents[2] / "data/traces/conv__default.pickle.gz"
WINDOW = Window("w1", 0, 8)


def advised(peak_mib: int = 40) -> BatchAdvice:
    """Of a job about as large as the recorded one."""

    def peak(size: int) -> int:
        return 100 * MIB + size * peak_mib * MIB

    columns = {
        "category.parameters_bytes": 20 * MIB,
        "category.optimizer_state_bytes": 20 * MIB,
    }
    rank = batch_rank(planned((4, 9), (8, 9)), peak, columns=columns, total_bytes=1500 * MIB)
    found = batch_advice(rank)
    assert isinstance(found, BatchAdvice), found
    return found


class Opened:
    """Stored files, and how often they were opened."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.times = 0

    def __call__(self, _snapshot: str) -> BinaryIO:
        self.times += 1
        return io.BytesIO(self.data)


async def answered(replays: WindowReplays, advice: BatchAdvice, window: Window) -> BatchAdvice:
    replays.refined(advice, window)
    while replays.is_busy:
        await asyncio.sleep(0.01)
    return replays.refined(advice, window)


def test_the_second_answer_is_replayed_and_the_question_is_asked_once() -> None:
    opened = Opened(gzip.decompress(TRACE.read_bytes()))

    async def ask() -> None:
        replays = WindowReplays(opened)
        first = replays.refined(advised(), WINDOW)
        assert not first.is_replayed
        found = await answered(replays, advised(), WINDOW)
        assert found.is_replayed
        assert 1 <= found.low <= found.batch <= (found.high or 0)
        assert await answered(replays, advised(), WINDOW) == found
        # Other steps are another question, for which the file is not read again.
        other = await answered(replays, advised(60), WINDOW)
        assert other.is_replayed
        assert other.batch < found.batch
        await replays.stop()

    asyncio.run(ask())
    assert opened.times == 1


@pytest.mark.parametrize("data", [b"no pickle", gzip.decompress(TRACE.read_bytes())])
def test_a_window_that_cannot_be_replayed_leaves_the_advice_as_it_is(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_replays, "MOST_CALLS", 3)
    opened = Opened(data)

    async def ask() -> None:
        replays = WindowReplays(opened)
        assert await answered(replays, advised(), WINDOW) == advised()
        assert await answered(replays, advised(), WINDOW) == advised()
        await replays.stop()

    asyncio.run(ask())
    assert opened.times == 1


def snapshot(**changes: Any) -> dict[str, Any]:
    return {
        "id": "a",
        "rank": 0,
        "state": "complete",
        "mode": "alloc",
        "device": 0,
        "taken_ns": 100,
        "steps": [[7, 1], [8, 2]],
    } | changes


def test_the_newest_window_of_one_known_size_is_chosen() -> None:
    sizes = {6: 4, 7: 8, 8: 8}
    good = snapshot()
    assert newest_window([good], 0, sizes, 0) == Window("a", 0, 8, 1)
    wrong_ones: list[dict[str, Any]] = [
        {"rank": 1},
        {"state": "receiving"},
        {"mode": "segments"},
        {"device": None},
        {"taken_ns": 1},
        {"steps": [[6, 0], [7, 1]]},
        {"steps": [[90, 1]]},
        {"steps": []},
    ]
    for wrong in wrong_ones:
        assert newest_window([snapshot(id="b", **wrong)], 0, sizes, 50) is None
        assert newest_window([snapshot(id="b", **wrong), good], 0, sizes, 50) == Window(
            "a", 0, 8, 1
        )
