from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.oom.held_tensors import Held, add_storing_lines, plain_holder, who_holds  # noqa: E402

pytestmark = pytest.mark.torch


def storage(tensor: Any) -> tuple[int, int]:
    held = tensor.untyped_storage()
    return held.data_ptr(), held.nbytes()


def look(tensors: list[Any], seconds: float = 30.0) -> Held:
    """Ask for some tensors, which nothing here holds meanwhile."""
    sizes = dict(map(storage, tensors))
    deadline_s = time.perf_counter() + seconds
    return who_holds(
        set(sizes), {address: tensors.pop(0) for address in sizes}, sizes, storage, deadline_s
    )


@pytest.fixture(autouse=True)
def without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def test_a_name_of_the_job_is_found() -> None:
    results = {"losses": [torch.zeros(10)]}
    held = look([results["losses"][0]])
    (holder,) = held.holders.values()
    assert holder.chain[0] == "results"
    assert held.garbage_bytes == 0
    assert plain_holder(holder)["held_by"][-1] == "results"


def test_what_no_name_leads_to_is_looked_at_from_below() -> None:
    class Node:
        """Holds itself."""

    def make() -> Any:
        node: Any = Node()
        node.itself, node.tensor = node, torch.zeros(10)
        return node.tensor

    held = look([make()])
    assert held.garbage_bytes == 40
    assert [holder.kind for holder in held.holders.values()] == ["garbage"]


def test_when_the_time_is_over_nothing_is_claimed() -> None:
    results = [torch.zeros(10)]
    held = look([results[0]], seconds=-1)
    assert held.garbage_bytes is None


def test_the_line_that_stores_is_found_once_for_all_that_lie_there() -> None:
    results = []
    for _ in range(3):
        results.append(torch.zeros(10))  # here
    held = look([*results])
    add_storing_lines(held.holders.values(), time.perf_counter() + 30)
    (line,) = {holder.stored_at for holder in held.holders.values()}
    assert line is not None
    with open(__file__) as source:
        assert "# here" in source.read().splitlines()[line.line - 1]


def test_when_the_time_is_over_no_source_is_read() -> None:
    results = [torch.zeros(10)]
    held = look([results[0]])
    add_storing_lines(held.holders.values(), time.perf_counter() - 1)
    assert [holder.stored_at for holder in held.holders.values()] == [None]
