"""Batches of indices pass as they are, until the one from which on they are to be others."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.batching.redraw import Redraw, drawn, installed


def pairs(count: int) -> Iterator[list[int]]:
    return iter([[each, each] for each in range(count)])


def test_what_is_applied_goes_on_before_the_draw_that_was_named() -> None:
    redraw = Redraw(pairs(6), 0, 0)
    taken: list[Any] = []

    def apply(source: Any) -> Iterator[Any]:
        taken.append(source)
        return iter([[9]])

    redraw.change_at(2, apply)
    assert list(redraw) == [[0, 0], [1, 1], [9]]
    assert len(taken) == 1
    assert (redraw.batches, redraw.samples) == (3, 5)


def test_at_the_end_it_is_applied_when_there_are_no_more() -> None:
    redraw = Redraw(pairs(2), 0, 0)
    ended: list[int] = []
    redraw.change_at(None, lambda source: ended.append(redraw.batches))
    assert next(redraw) == [0, 0]
    assert ended == []
    assert list(redraw) == [[1, 1]]
    assert ended == [2]


def test_cancelled_it_never_happens() -> None:
    redraw = Redraw(pairs(3), 0, 0)
    redraw.change_at(1, lambda source: iter([[9]]))
    assert redraw.cancel()
    assert not redraw.cancel()
    assert len(list(redraw)) == 3


@pytest.mark.expects_guarded_errors
def test_a_change_that_fails_leaves_the_job_what_it_had() -> None:
    redraw = Redraw(pairs(3), 0, 0)
    redraw.change_at(1, lambda source: [][0])
    assert list(redraw) == [[0, 0], [1, 1], [2, 2]]


def test_it_begins_to_count_where_the_iterator_is_and_is_put_there_once() -> None:
    single: Any = SimpleNamespace(_sampler_iter=pairs(9), _num_yielded=2)
    workers: Any = SimpleNamespace(_sampler_iter=pairs(9), _num_yielded=2, _send_idx=6)
    assert (drawn(single), drawn(workers)) == (2, 6)
    redraw = installed(workers, batch_size=2, skipped=3)
    assert workers._sampler_iter is redraw
    assert (redraw.batches, redraw.samples) == (6, 18)
    assert installed(workers, batch_size=5, skipped=0) is redraw


def test_it_knows_that_its_source_has_ended() -> None:
    redraw = Redraw((each for each in [[1], [2]]), 0, 0)
    assert not redraw.is_over
    assert list(redraw) == [[1], [2]]
    assert redraw.is_over
