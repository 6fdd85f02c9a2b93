from __future__ import annotations

import threading

from vramscope.oom.moment import Moment


def test_each_has_a_name_of_its_own_and_this_thread() -> None:
    first, second = Moment(1, "observer"), Moment(1, "observer")
    assert first.id != second.id
    assert first.thread_number == threading.get_ident()
    assert (first.segment_bytes, first.allowed_bytes, first.device_free_bytes) == (None,) * 3
