"""Tensors that are changed in place are told from those that are only kept."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")

from vramscope.growth.tensor_writes import are_written, written_until_now  # noqa: E402

pytestmark = pytest.mark.torch


def test_one_of_them_that_is_written_is_enough() -> None:
    average, copy = torch.ones(4), torch.ones(4)
    average.mul_(2)  # before it was looked at
    before = written_until_now([average, copy])
    assert are_written(before) is False
    average.lerp_(copy, 0.1)
    assert are_written(before) is True


def test_what_is_read_and_what_is_made_anew_is_not_written() -> None:
    kept = torch.ones(4)
    before = written_until_now([kept])
    assert kept.sum() == 4
    kept = kept * 2
    assert are_written(before) is not True


def test_it_keeps_nothing_alive_and_knows_nothing_of_what_is_gone() -> None:
    before = written_until_now([torch.ones(4)])
    gc.collect()
    assert are_written(before) is None
    assert are_written([]) is None


def test_of_the_inference_mode_it_is_not_known() -> None:
    with torch.inference_mode():
        before = written_until_now([torch.ones(4)])
    assert before == []
