from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.tensors import module_scan  # noqa: E402
from vramscope.tensors.module_scan import ModuleScan  # noqa: E402
from vramscope.tensors.modules import Modules  # noqa: E402

pytestmark = pytest.mark.torch

nn = torch.nn
LONG_S = 300.0


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


@pytest.fixture
def frozen() -> Iterator[None]:
    gc.freeze()
    yield
    gc.unfreeze()


def is_found(model: Any, modules: Modules) -> bool:
    return {id(each) for each in model.modules()} <= {id(each) for each in modules.alive()}


def test_every_module_that_is_alive_is_found(model: Any) -> None:
    modules = Modules()
    scan = ModuleScan(modules, LONG_S)
    scan.go_on()
    assert scan.is_over
    assert scan.is_complete
    assert scan.found >= 3
    assert scan.objects > 1000
    assert scan.took_s > 0
    assert is_found(model, modules)


def test_it_goes_on_turn_after_turn_until_all_were_looked_at(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_scan, "MOST_TURNS", 10_000)
    modules = Modules()
    scan = ModuleScan(modules, turn_s=0.0)
    turns = 0
    while not scan.is_over:
        scan.go_on()
        turns += 1
    assert turns > 1
    assert scan.is_complete
    assert is_found(model, modules)


def test_with_too_many_objects_it_gives_up_and_says_so(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_scan, "_CHUNK", 1)
    monkeypatch.setattr(module_scan, "_PARTS", 1 << 62)
    scan = ModuleScan(Modules(), turn_s=0.0)
    for _ in range(module_scan.MOST_TURNS):
        assert not scan.is_over
        scan.go_on()
    assert scan.is_over
    assert not scan.is_complete


def test_however_many_objects_there_are_a_few_turns_are_enough(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_scan, "_CHUNK", 1000)  # as 20,000 of 200 times as many
    modules = Modules()
    scan = ModuleScan(modules, turn_s=0.0)
    for _ in range(10):
        scan.go_on()
    assert scan.is_over
    assert scan.is_complete
    assert is_found(model, modules)


def test_objects_are_not_asked_what_they_are(model: Any) -> None:
    target = nn.Linear(1, 1)
    proxies = [weakref.proxy(target), Odd()]
    del target  # from now on the proxy raises at every question
    scan = ModuleScan(Modules(), LONG_S)
    scan.go_on()
    assert scan.is_complete
    assert len(proxies) == 2


def test_nothing_is_held_afterwards(model: Any) -> None:
    modules = Modules()
    extra = nn.Linear(2, 2)
    watched = weakref.ref(extra)
    scan = ModuleScan(modules, LONG_S)
    scan.go_on()
    del extra
    assert watched() is None
    assert scan.is_over


def test_what_the_job_has_frozen_is_known_to_be_missed(model: Any, frozen: None) -> None:
    scan = ModuleScan(Modules(), LONG_S)
    scan.go_on()
    assert scan.is_over
    assert not scan.is_complete
