from __future__ import annotations

import threading
import time

import pytest

from tests.support.commits import WAIT_S
from tests.support.streams import START_NS
from vramscope_protocol.messages import Event, Goodbye
from vramscope_server.store.database import StoreError
from vramscope_server.store.submission import Submission
from vramscope_server.store.submission_queue import Call, SubmissionQueue


def message(seq: int, size_bytes: int = 10) -> Submission:
    return Submission("stream-a", seq, Event(seq, START_NS, "mark"), START_NS, size_bytes)


def soon() -> float:
    return time.monotonic() + WAIT_S


def test_items_come_out_in_order() -> None:
    queue = SubmissionQueue(1000, 1000, 1000)
    assert queue.put(message(1))
    future = queue.put_call(lambda connection: None)
    assert queue.put(message(2))
    taken = [queue.take(soon()) for _ in range(3)]
    assert taken[0] == message(1)
    assert isinstance(taken[1], Call)
    assert taken[1].future is future
    assert taken[2] == message(2)
    assert queue.take(time.monotonic()) is None


@pytest.mark.parametrize(("max_bytes", "max_messages"), [(25, 1000), (1000, 3)])
def test_what_is_taken_counts_until_it_is_committed(max_bytes: int, max_messages: int) -> None:
    queue = SubmissionQueue(max_bytes, max_messages, 1000)
    assert [queue.put(message(seq)) for seq in range(1, 5)] == [True, True, True, False]
    for _ in range(3):
        queue.take(soon())
    assert not queue.put(message(4))
    assert queue.put_call(lambda connection: None)  # calls are always taken
    called = threading.Event()
    queue.when_space(called.set)
    assert not called.is_set()
    queue.committed(30, 3)
    assert called.is_set()
    assert queue.put(message(4))
    assert (queue.pending_bytes, queue.pending_messages) == (10, 1)
    assert queue.oldest_pending_s() >= 0.0


def test_space_now_is_said_at_once() -> None:
    called = threading.Event()
    SubmissionQueue(1, 1, 1).when_space(called.set)
    assert called.is_set()


def test_close_wakes_everybody_and_leaves_what_is_there() -> None:
    queue = SubmissionQueue(1000, 1, 1000)
    queue.put(message(1))
    called = threading.Event()
    queue.when_space(called.set)
    call = queue.put_call(lambda connection: None)
    queue.close()
    assert called.is_set()
    assert not queue.put(message(2))
    assert queue.take(soon()) == message(1)
    queue.fail_calls()
    assert queue.take(soon()) is None
    for future in (call, queue.put_call(lambda connection: None)):
        with pytest.raises(StoreError):
            future.result(WAIT_S)


def test_a_waiting_taker_gets_what_comes() -> None:
    queue = SubmissionQueue(1000, 1000, 1000)
    taken: list[object] = []
    taker = threading.Thread(target=lambda: taken.append(queue.take(soon())))
    taker.start()
    queue.put(message(1))
    taker.join(WAIT_S)
    assert taken == [message(1)]


@pytest.mark.parametrize("waker", ["urgent", "large", "call"])
def test_who_waits_is_not_woken_by_every_message(waker: str) -> None:
    queue = SubmissionQueue(1000, 1000, 100)
    queue.put(message(1))
    queue.take(soon())  # pending from now on
    taken: list[object] = []
    taker = threading.Thread(target=lambda: taken.append(queue.take(soon())))
    taker.start()
    queue.put(message(2))
    taker.join(0.05)
    assert taker.is_alive()  # message 2 waits for the commit that message 1 has caused
    if waker == "urgent":
        queue.put(Submission("stream-a", 3, Goodbye(3, START_NS, "exit"), START_NS, 10))
    elif waker == "large":
        queue.put(message(3, 100))
    else:
        queue.put_call(lambda connection: None)
    taker.join(WAIT_S)
    assert taken == [message(2)]
    assert queue.has_items
