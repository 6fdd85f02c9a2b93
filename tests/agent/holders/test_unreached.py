"""Of tensors that no name leads to it is told whether they are garbage, and what has them."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.holders.live_tensors import TensorClasses, looking  # noqa: E402
from vramscope.holders.reach import Reach  # noqa: E402
from vramscope.holders.unreached import Above  # noqa: E402

pytestmark = pytest.mark.torch


class Cycle:
    def __init__(self, length: int) -> None:
        self.t = torch.ones(length)
        self.me = self


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def tensors_of(length: int) -> list[Any]:
    """Plain tensors of a length that Python's collector knows of; in ``looking``."""
    objects = gc.get_objects()
    is_plain = TensorClasses().is_plain
    try:
        return [each for each in objects if is_plain(each) and tuple(each.shape) == (length,)]
    finally:
        # It is among the objects itself: they would all be held until the next collection.
        objects.clear()


def above(length: int, limit_s: float = 60.0) -> tuple[Above, Reach]:
    """What is above tensors of a length, by which alone they are known here."""
    reach = Reach(60.0)
    with looking():
        reach.search(lambda value: False)
        tensors = tensors_of(length)
        births = list(range(len(tensors)))
        return Above(reach, tensors, births, limit_s), reach


def test_garbage_with_its_circle() -> None:
    Cycle(7001)
    Cycle(7001)
    found, reach = above(7001)
    assert found.is_complete
    assert found.garbage == {0, 1}
    (holder,) = found.holders([0, 1])
    assert (holder.kind, holder.tensors) == ("garbage", 2)
    assert holder.chain == ["Cycle", "Cycle.me", "Cycle.t"]
    assert holder.targets[0].name == "me"
    found.clear()
    reach.clear()


def test_a_library_that_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = types.ModuleType("a_library")
    library.__file__ = "/opt/venv/lib/python3.11/site-packages/a_library.py"
    library.cache = {"a": torch.ones(7002)}
    monkeypatch.setitem(sys.modules, "a_library", library)
    del library
    found, reach = above(7002)
    (holder,) = found.holders([0])
    assert holder.kind == "global"
    assert holder.chain[0] == "a_library.cache"
    found.clear()
    reach.clear()


def test_what_only_a_graph_has_is_alone() -> None:
    graph = (torch.ones(7003, requires_grad=True) * torch.ones(7003)).grad_fn
    found, reach = above(7003)
    # The leaf has an object, which its node alone refers to.
    assert found.garbage == set()
    assert graph is not None
    found.clear()
    reach.clear()


def test_a_generator_that_waits() -> None:
    def batches() -> Iterator[int]:
        held = torch.ones(7004)
        yield 1
        print(held)

    for _ in batches():
        found, reach = above(7004)
        holders = found.holders([0])
        found.clear()
        reach.clear()
    assert [holder.kind for holder in holders] == ["local"]
    assert holders[0].chain[0].startswith("a variable of ")


def test_stopped_early_it_claims_nothing() -> None:
    Cycle(7005)
    found, reach = above(7005, limit_s=0.0)
    assert not found.is_complete
    assert found.garbage == set()
    assert {holder.kind for holder in found.holders([0])} <= {"unknown"}
    found.clear()
    reach.clear()
