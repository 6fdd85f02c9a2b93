from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.tensors.module_scan import scan_for_modules  # noqa: E402
from vramscope.tensors.modules import Modules  # noqa: E402

pytestmark = pytest.mark.torch

nn = torch.nn


class Unhashable(type):
    """Classes that refuse to be keys."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(cls, other: object) -> bool:
        raise AssertionError("a class was compared")


class Odd(metaclass=Unhashable):
    """An object that must not be asked anything."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")


@pytest.fixture
def model() -> Any:
    """Built before anything was watched."""
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU())


def test_every_module_that_is_alive_is_found(model: Any) -> None:
    modules = Modules()
    scan = scan_for_modules(modules)
    assert scan.is_complete
    assert scan.modules >= 3
    assert scan.objects > 1000
    assert scan.took_s > 0
    assert {id(each) for each in model.modules()} <= {id(each) for each in modules.alive()}


def test_objects_are_not_asked_what_they_are(model: Any) -> None:
    target = nn.Linear(1, 1)
    proxies = [weakref.proxy(target), Odd()]
    del target  # from now on the proxy raises at every question
    modules = Modules()
    assert scan_for_modules(modules).is_complete
    assert len(proxies) == 2


def test_nothing_is_held_afterwards(model: Any) -> None:
    modules = Modules()
    extra = nn.Linear(2, 2)
    watched = weakref.ref(extra)
    scan_for_modules(modules)
    del extra
    assert watched() is None
    gc.collect()


def test_a_scan_that_takes_too_long_is_given_up_and_says_so(model: Any) -> None:
    scan = scan_for_modules(Modules(), longest_s=0.0)
    assert not scan.is_complete
    assert scan.modules == 0
