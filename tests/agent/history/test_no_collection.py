from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from vramscope.history.no_collection import no_collection


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()


def test_nothing_is_collected_inside_and_all_is_as_before_then() -> None:
    def interrupted() -> None:
        with no_collection():
            assert not gc.isenabled()
            raise KeyboardInterrupt

    gc.enable()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert gc.isenabled()
    gc.disable()
    with no_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()
