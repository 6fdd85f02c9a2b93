"""Work is done in a thread of its own, which is given up when it hangs."""

from __future__ import annotations

import asyncio
import threading

import pytest

from vramscope_server.findings.judge_thread import MAX_LOST, JudgeHangs, JudgeThread


def test_what_it_does_is_answered_and_raised() -> None:
    async def go() -> None:
        thread = JudgeThread(60.0)
        names = [await thread.call(lambda: threading.current_thread().name) for _ in range(2)]
        assert names == ["vramscope-judge"] * 2
        with pytest.raises(ZeroDivisionError):
            await thread.call(lambda: 1 // 0)
        thread.stop()

    asyncio.run(go())


def test_one_that_hangs_is_given_up_and_another_goes_on() -> None:
    release = threading.Event()

    async def go() -> None:
        thread = JudgeThread(0.01)
        with pytest.raises(JudgeHangs):
            await thread.call(release.wait)
        assert thread.lost == 1
        patient = JudgeThread(60.0)
        assert await patient.call(lambda: 5) == 5
        patient.stop()
        for _ in range(MAX_LOST - 1):
            with pytest.raises(JudgeHangs):
                await thread.call(release.wait)
        # No more than so many hang at once.
        with pytest.raises(JudgeHangs, match="nothing is judged any more"):
            await thread.call(lambda: 5)

    asyncio.run(go())
    release.set()  # whoever waited for the answers is gone: they are dropped


def test_stopping_ends_the_thread_and_it_can_begin_again() -> None:
    async def go() -> None:
        thread = JudgeThread(60.0)
        first = await thread.call(threading.current_thread)
        thread.stop()
        thread.stop()
        await asyncio.to_thread(first.join)
        assert not first.is_alive()
        assert await thread.call(threading.current_thread) is not first
        thread.stop()

    asyncio.run(go())
