from __future__ import annotations

import os

import pytest

from vramscope.config import load_config
from vramscope.identity.inheritance import (
    VARIABLE,
    Inheritance,
    bequeath,
    disinherit,
    inherited,
)


def test_what_is_left_to_children_is_what_they_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    config = load_config(
        {},
        url="https://host:1",
        token="secret",
        allow="empty_cache,stats",
        fields="a,b",
        emulate=True,
        capacity="3GiB",
    )
    left = Inheritance(config, "a run", "a key")
    assert inherited() is None
    bequeath(left)
    assert inherited() == left
    disinherit()
    assert VARIABLE not in os.environ
    disinherit()


@pytest.mark.parametrize("text", ["", "1", "{}", '{"config": 3}', "\udcff"])
def test_what_is_not_understood_is_nothing(text: str) -> None:
    assert inherited({VARIABLE: text}) is None
