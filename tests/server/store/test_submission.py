from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from tests.support.streams import START_NS
from vramscope_protocol.messages import Event
from vramscope_server.store.submission import Submission


def test_what_two_threads_share_cannot_change() -> None:
    submission = Submission("stream-a", 1, Event(1, START_NS, "mark"), START_NS, 10)
    with pytest.raises(FrozenInstanceError):
        submission.seq = 2  # type: ignore[misc]  # what the test is about
    assert submission.epoch == 0
