"""Real loaders are followed: samples of each step, and which loader it is that training reads."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.step_rig import Rig, sgd
from vramscope.batching.loader_watch import COUNT, LARGEST, SAMPLES
from vramscope_protocol.columns import UNKNOWN

pytestmark = pytest.mark.torch


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    rig.tracker.install()
    yield rig
    rig.tracker.remove()


class Job:
    """Trains one weight on whatever batches it is given."""

    def __init__(self) -> None:
        self.optimizer = sgd()
        (self.weight,) = self.optimizer.param_groups[0]["params"]

    def backward(self, batch: Any) -> None:
        (self.weight.sum() * batch.float().sum()).backward()

    def train(self, batches: Any, every: int = 1) -> None:
        for number, batch in enumerate(batches, 1):
            self.backward(batch)
            if number % every == 0:
                self.optimizer.step()


def loader(samples: int, batch_size: int, **options: Any) -> Any:
    import torch

    data: Any = torch.arange(samples)
    made: Any = torch.utils.data.DataLoader(data, batch_size=batch_size, **options)
    return made


def counts(rig: Rig) -> list[int]:
    return [row[SAMPLES] for row in rig.rows()]


def test_the_samples_of_each_step_are_counted_accumulated_ones_added(rig: Rig) -> None:
    job = Job()
    job.train(loader(10, 4))
    job.train(loader(16, 4), every=2)
    rows = rig.rows()
    assert [row[SAMPLES] for row in rows] == [4, 4, 2, 8, 8]
    assert [row[COUNT] for row in rows] == [1, 1, 1, 2, 2]
    assert [row[LARGEST] for row in rows] == [4, 4, 2, 4, 4]


def test_a_loader_is_known_by_what_draws_its_indices_from_epoch_to_epoch(rig: Rig) -> None:
    job, data = Job(), loader(8, 4)
    for _ in range(2):
        job.train(data)
        (found,) = rig.tracker.loaders.training
        assert found.index_sampler is data.batch_sampler


def test_evaluation_does_not_count_and_is_not_training(rig: Rig) -> None:
    import torch

    job, data = Job(), loader(8, 4)
    for _ in range(2):
        job.train(data)
        with torch.no_grad():
            for batch in loader(6, 1):
                _ = batch + 1
        for batch in loader(6, 1):
            with torch.no_grad():
                _ = batch + 1
    assert counts(rig) == [4] * 4
    (found,) = rig.tracker.loaders.training
    assert found.index_sampler is data.batch_sampler


def test_two_loaders_of_one_step_are_both_training(rig: Rig) -> None:
    job = Job()
    for first, second in zip(loader(8, 4), loader(4, 2), strict=True):
        job.backward(first)
        job.backward(second)
        job.optimizer.step()
    assert [(row[SAMPLES], row[COUNT], row[LARGEST]) for row in rig.rows()] == [(6, 1, 6)] * 2
    assert len(rig.tracker.loaders.training) == 2


def test_a_loader_that_fails_and_batches_without_a_tensor_are_unknown(rig: Rig) -> None:
    class Failing:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> str:
            if index == 2:
                raise OSError("the disk is gone")
            return "a word"

    import torch

    failing: Any = Failing()
    data: Any = torch.utils.data.DataLoader(failing, batch_size=1)
    job = Job()
    with pytest.raises(OSError, match="the disk is gone"):
        job.train(torch.ones(1) for _ in data)
    job.train(loader(4, 2))
    assert counts(rig) == [UNKNOWN, UNKNOWN, 2, 2]


def test_steps_without_a_fetch_are_unknown(rig: Rig) -> None:
    import torch

    Job().train([torch.ones(4)] * 2)
    assert counts(rig) == [UNKNOWN] * 2
    assert rig.tracker.loaders.training == ()


def test_nothing_of_the_job_lives_longer(rig: Rig) -> None:
    import gc
    import weakref

    data = loader(8, 4)
    Job().train(data)
    kept = weakref.ref(data.batch_sampler)
    del data
    gc.collect()
    assert kept() is None
    (found,) = rig.tracker.loaders.training
    assert found.index_sampler is found.iterator is None


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="no accelerate")
def test_accelerate_reads_a_batch_ahead_and_it_counts_where_it_is_used(rig: Rig) -> None:
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    job = Job()
    for dispatch in (False, True):
        config = DataLoaderConfiguration(dispatch_batches=dispatch)
        accelerator: Any = Accelerator(cpu=True, dataloader_config=config)
        job.train(accelerator.prepare(loader(10, 4)))
    assert counts(rig) == [4, 4, 2, *[UNKNOWN] * 3]


def test_each_fetch_is_charged_to_the_agent(rig: Rig) -> None:
    from vramscope.batching.loader_watch import LoaderWatch

    costs: list[int] = []
    watch = LoaderWatch(rig.phases.name, costs.append)
    iterator = iter(loader(8, 4))
    watch.before(iterator)
    watch.fetched(next(iterator))
    watch.after(is_over=False)
    assert len(costs) == 3
    assert all(0 < cost <= 50_000 for cost in costs)
