from __future__ import annotations

from vramscope.outbox.losses import Losses
from vramscope_protocol.messages import Lost


def test_totals_by_kind_and_reason() -> None:
    losses = Losses()
    losses.count("full", samples=3, seq=4)
    losses.count("full", samples=2, steps=1, seq=2)
    losses.count("disk", messages=1)
    assert losses.message() == Lost({"full": 5}, {"full": 1}, {"disk": 1}, 4)
    assert losses.version == 3


def test_counting_nothing_is_no_news() -> None:
    losses = Losses()
    losses.count("full", samples=0, seq=9)
    assert losses.version == 0
    assert losses.message() == Lost()
