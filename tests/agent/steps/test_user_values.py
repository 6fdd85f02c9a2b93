"""What log() takes, keeps and refuses."""

from __future__ import annotations

import math

import pytest

from vramscope.notices import Notices
from vramscope.steps.user_values import MAX_KEYS, UserValues


class FakeCudaTensor:
    is_cuda = True

    def __float__(self) -> float:
        raise AssertionError("this would wait for the device")


class CpuTensor:
    is_cuda = False

    def __float__(self) -> float:
        return 0.5


@pytest.fixture
def notices() -> Notices:
    return Notices()


def test_a_value_belongs_to_one_row(notices: Notices) -> None:
    values = UserValues(notices)
    values.log({"loss": 2, "lr": CpuTensor()})
    assert [field.name for field in values.fields] == ["user.loss", "user.lr"]
    assert {field.code for field in values.fields} == {"d"}
    assert values.take() == [2.0, 0.5]
    values.log({"lr": 0.25})
    loss, rate = values.take()
    assert math.isnan(loss)
    assert rate == 0.25


def test_the_last_value_of_a_step_wins(notices: Notices) -> None:
    values = UserValues(notices)
    values.log({"loss": 2.0})
    values.log({"loss": 1.0})
    assert values.take() == [1.0]


def test_a_cuda_tensor_is_not_waited_for(notices: Notices) -> None:
    values = UserValues(notices)
    values.log({"loss": FakeCudaTensor()})
    assert math.isnan(values.take()[0])
    assert notices.texts() == ["log(loss=...): pass a number, not a CUDA tensor"]


@pytest.mark.parametrize("value", ["high", None, [1, 2], 10**400])
def test_what_is_no_number_is_noted(notices: Notices, value: object) -> None:
    values = UserValues(notices)
    values.log({"loss": value})
    assert math.isnan(values.take()[0])
    assert notices.texts() == ["log(loss=...): expected a number"]


def test_names_are_bounded(notices: Notices) -> None:
    values = UserValues(notices)
    values.log({f"name{number}": number for number in range(MAX_KEYS + 10)})
    assert len(values.fields) == len(values.take()) == MAX_KEYS
    assert notices.texts() == [f"log(): only the first {MAX_KEYS} names are kept"]


@pytest.mark.parametrize("name", ["", "a\udcff", "two\nlines", "x" * 101])
def test_a_name_that_cannot_be_shown_is_left_out(notices: Notices, name: str) -> None:
    values = UserValues(notices)
    values.log({name: 1.0, "loss": 2.0})
    assert [field.name for field in values.fields] == ["user.loss"]
    assert notices.texts() == ["log(): expected names of 1 to 100 printable characters"]
