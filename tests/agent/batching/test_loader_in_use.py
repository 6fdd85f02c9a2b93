"""How far a loader is, and which it is where a step has read from several iterators."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope.batching.loader_in_use import LoaderInUse, loader_in_use, world_size
from vramscope.batching.loader_watch import LoaderPass
from vramscope_protocol.errors import VramscopeError

pytestmark = pytest.mark.torch


def loader(**options: Any) -> Any:
    import torch

    data: Any = torch.arange(48)
    made: Any = torch.utils.data.DataLoader(data, batch_size=4, **options)
    return made


def begun(data: Any, fetches: int, reader: str = "") -> tuple[Any, LoaderPass]:
    iterator = iter(data)
    for _ in range(fetches):
        next(iterator)
    return iterator, LoaderPass(iterator, reader)


def test_batches_on_their_way_are_known_with_workers_and_with_accelerate() -> None:
    for options, reader, numbers in (
        ({}, "", (3, 3, 0)),
        ({"num_workers": 2}, "", (3, 7, 4)),
        ({}, "__iter__", (2, 3, 1)),
    ):
        data = loader(**options)
        iterator, seen = begun(data, 3, reader)
        found = loader_in_use([seen])
        assert (found.trained, found.drawn, found.prefetched) == numbers
        assert found.iterator is iterator
        assert found.samples_at(5) == 20


def test_an_epoch_that_is_over_is_between_two() -> None:
    data = loader()
    _iterator, seen = begun(data, 12)
    seen.ended()
    found = loader_in_use([seen])
    assert (found.is_running, found.trained, found.drawn) == (False, 0, 0)


def test_the_pass_that_goes_on_is_the_one_that_counts() -> None:
    data = loader()
    _old, over = begun(data, 12)
    over.ended()
    _new, running = begun(data, 1)
    for passes in ([over, running], [running, over]):
        found = loader_in_use(passes)
        assert (found.is_running, found.trained) == (True, 1)


def test_what_the_job_has_named_is_taken_of_several() -> None:
    one, other = loader(), loader()
    kept = [begun(one, 1), begun(other, 2)]
    passes = [each for _, each in kept]
    with pytest.raises(VramscopeError, match="2 loaders"):
        loader_in_use(passes)
    assert loader_in_use(passes, other.batch_sampler).trained == 2
    assert not loader_in_use([], one.batch_sampler).is_running


def test_what_accelerate_has_fixed_is_refused() -> None:
    data = loader()
    iterator, seen = begun(data, 1)
    iterator._dataset = type("IterableDatasetShard", (), {})()
    with pytest.raises(VramscopeError, match="IterableDataset"):
        LoaderInUse(seen, data.batch_sampler)


def test_without_a_process_group_there_is_one_rank() -> None:
    assert world_size() == 1
