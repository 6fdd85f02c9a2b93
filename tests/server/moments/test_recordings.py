"""Open snapshots: few, read in a thread of their own, errors that say what is wrong."""

from __future__ import annotations

import asyncio
import io
import pickle
import threading
from typing import BinaryIO

import pytest

from tests.support.made_moments import LAST_STEPS
from vramscope_analysis.moments import RecordedMemory
from vramscope_analysis.snapshot import Limits
from vramscope_protocol.errors import VramscopeError
from vramscope_server.moments import recordings
from vramscope_server.moments.recordings import Recordings, Wanted


class Shelf:
    """Stored files, and how often each was opened."""

    def __init__(self, **files: bytes) -> None:
        self.files = files
        self.opened: list[str] = []
        self.threads: set[str] = set()

    def open_now(self, name: str) -> BinaryIO:
        self.opened.append(name)
        self.threads.add(threading.current_thread().name)
        return io.BytesIO(self.files[name])


def entries(memory: RecordedMemory) -> int:
    return memory.entries


def ask(shelf_recordings: Recordings, *names: str) -> int:
    wanted = [Wanted(name, None) for name in names]

    def question(*memories: RecordedMemory) -> int:
        return sum(memory.entries for memory in memories)

    return asyncio.run(shelf_recordings.ask(question, *wanted))


GOOD = LAST_STEPS.read_bytes()


def test_one_is_read_once_and_in_a_thread_of_its_own() -> None:
    shelf = Shelf(a=GOOD)
    opened = Recordings(shelf.open_now)
    assert [ask(opened, "a"), ask(opened, "a")] == [8000, 8000]
    assert shelf.opened == ["a"]
    assert threading.current_thread().name not in shelf.threads
    opened.close()


def test_a_device_by_its_number_is_the_one_that_is_chosen_without() -> None:
    opened = Recordings(Shelf(a=GOOD).open_now)

    def question(one: RecordedMemory, other: RecordedMemory) -> bool:
        return one is other

    assert asyncio.run(opened.ask(question, Wanted("a", None), Wanted("a", 0)))
    opened.close()


def test_the_one_not_asked_for_longest_goes() -> None:
    shelf = Shelf(a=GOOD, b=GOOD, c=GOOD)
    opened = Recordings(shelf.open_now, most_open=2)
    for name in "abac":
        ask(opened, name)
    assert opened.open_snapshots == ["a", "c"]
    assert ask(opened, "a", "c") == 16000
    ask(opened, "b")
    assert shelf.opened == ["a", "b", "c", "b"]
    opened.close()


def test_steps_that_were_told_name_the_ends() -> None:
    opened = Recordings(Shelf(a=GOOD).open_now)

    def question(memory: RecordedMemory) -> list[int | None]:
        return [end.step for end in memory.step_ends]

    steps = [(31, 1_795_983_599_000_000)]
    assert asyncio.run(opened.ask(question, Wanted("a", 0, steps))) == [31]
    opened.close()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "got an empty file"),
        (pickle.dumps(print, 4), "this snapshot cannot be read: "),
        (pickle.dumps({"segments": 1}, 4), "this snapshot cannot be read: "),
        (GOOD[:-200], "this snapshot cannot be read: "),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_reason(data: bytes, message: str) -> None:
    opened = Recordings(Shelf(bad=data, good=GOOD).open_now)
    with pytest.raises(VramscopeError, match=message) as raised:
        ask(opened, "bad")
    assert raised.value.code == "bad_request"
    assert ask(opened, "good") == 8000, "the next question is answered"
    opened.close()


def test_one_that_is_too_large_is_refused() -> None:
    opened = Recordings(Shelf(a=GOOD).open_now, limits=Limits(file_bytes=1000))
    with pytest.raises(VramscopeError, match="cannot be read") as raised:
        ask(opened, "a")
    assert raised.value.code == "bad_request"
    opened.close()


def test_a_device_that_is_not_there() -> None:
    opened = Recordings(Shelf(a=GOOD).open_now)
    with pytest.raises(VramscopeError, match="expected a device of the snapshot") as raised:
        asyncio.run(opened.ask(entries, Wanted("a", 7)))
    assert raised.value.code == "not_found"
    opened.close()


def test_more_questions_than_may_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "MOST_WAITING", 2)
    shelf = Shelf(a=GOOD)
    gate = threading.Event()

    def held(name: str) -> BinaryIO:
        assert gate.wait(30)
        return shelf.open_now(name)

    opened = Recordings(held)

    async def three() -> list[object]:
        waiting = [asyncio.ensure_future(opened.ask(entries, Wanted("a", None))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(VramscopeError, match="wait already") as raised:
            await opened.ask(entries, Wanted("a", None))
        assert raised.value.code == "rate_limited"
        gate.set()
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(three()) == [8000, 8000]
    opened.close()
