"""The real samplers of PyTorch and accelerate are re-batched in the middle of an epoch."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.batching.index_samplers import IndexSamplers
from vramscope_protocol.errors import VramscopeError

pytestmark = pytest.mark.torch

needs_accelerate = pytest.mark.skipif(
    importlib.util.find_spec("accelerate") is None, reason="no accelerate"
)


def plain(samples: int, size: int, *, drop_last: bool) -> Any:
    from torch.utils.data import BatchSampler, SequentialSampler

    return BatchSampler(SequentialSampler(range(samples)), size, drop_last)


def shards(samples: int, size: int, *, drop_last: bool, split: bool = False) -> list[Any]:
    from accelerate.data_loader import BatchSamplerShard

    return [
        BatchSamplerShard(plain(samples, size, drop_last=drop_last), 2, rank, split)
        for rank in range(2)
    ]


def resized(sampler: Any, after: int, size: int) -> list[list[int]]:
    """All batches of an epoch whose size changes after so many."""
    samplers = IndexSamplers(sampler)
    source: Iterator[list[int]] = iter(sampler)
    batches = [next(source) for _ in range(after)]
    goes_on = samplers.continuation(source)
    samplers.set(size)
    assert samplers.batch_size == size
    return [*batches, *(goes_on or source)]


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_batch_sampler_goes_on_with_the_next_index(
    after: int, size: int, drop_last: bool
) -> None:
    batches = resized(plain(22, 4, drop_last=drop_last), after, size)
    assert [len(batch) for batch in batches[:after]] == [4] * after
    numbers = [number for batch in batches for number in batch]
    assert numbers == list(range(len(numbers)))
    rest = batches[after:]
    if drop_last:
        assert {len(batch) for batch in rest} == {size}
        assert len(numbers) > 22 - size
    else:
        assert len(numbers) == 22
        assert {len(batch) for batch in rest[:-1]} <= {size}


@pytest.mark.parametrize("drop_last", [False, True])
def test_an_epoch_may_be_changed_a_second_time(drop_last: bool) -> None:
    sampler = plain(26, 4, drop_last=drop_last)
    samplers = IndexSamplers(sampler)
    source: Iterator[list[int]] = iter(sampler)
    batches = [next(source)]
    for size in (2, 6):
        source = samplers.continuation(source) or source
        samplers.set(size)
        batches.append(next(source))
    assert [len(batch) for batch in [*batches, *source]] == [
        4,
        2,
        6,
        6,
        6,
        *([] if drop_last else [2]),
    ]


@needs_accelerate
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("samples", [48, 50])
@pytest.mark.parametrize("size", [2, 8])
def test_two_shards_draw_equally_many_batches_and_all_samples(
    split: bool, drop_last: bool, samples: int, size: int
) -> None:
    whole = 8 if split else 4
    made = shards(samples, whole, drop_last=drop_last, split=split)
    first, second = (resized(each, 2, size) for each in made)
    assert [len(batch) for batch in first] == [len(batch) for batch in second]
    assert {len(batch) for batch in first[2:]} == {size}
    numbers = [number for batch in (*first, *second) for number in batch]
    samplers = IndexSamplers(made[0])
    expected = 2 + samplers.batches(samples - 16, size)
    assert len(first) == expected
    if drop_last:
        assert len(set(numbers)) == len(numbers) > samples - 2 * size
    else:
        assert set(numbers) == set(range(samples))


@needs_accelerate
def test_an_epoch_that_was_resumed_knows_what_it_left_out() -> None:
    from accelerate.data_loader import SkipBatchSampler

    samplers = IndexSamplers(SkipBatchSampler(plain(20, 4, drop_last=False), 3))
    assert (samplers.skipped, samplers.batch_size, samplers.samples) == (3, 4, 20)


def test_ranks_are_equal_only_where_the_sampler_makes_them_so() -> None:
    from torch.utils.data import BatchSampler, DistributedSampler

    data: Any = range(20)
    divided = BatchSampler(DistributedSampler(data, 2, 0), 4, drop_last=False)
    assert IndexSamplers(divided).is_equal_on(2)
    assert not IndexSamplers(divided).is_equal_on(4)
    assert IndexSamplers(plain(20, 4, drop_last=False)).is_equal_on(1)
    assert not IndexSamplers(plain(20, 4, drop_last=False)).is_equal_on(2)


def test_samplers_of_the_jobs_own_are_refused_with_what_to_do() -> None:
    from torch.utils.data import BatchSampler, SequentialSampler

    class ByLength:
        """Has no batch size."""

        def __iter__(self) -> Iterator[list[int]]:
            return iter([[1, 2]])

    class Own(BatchSampler):  # type: ignore[misc]  # torch is untyped here
        """Reads its size at the beginning, maybe."""

        def __iter__(self) -> Iterator[list[int]]:
            return iter([[1, 2]])

    for sampler, reason in (
        (ByLength(), "has no batch size"),
        (Own(SequentialSampler(range(4)), 2, drop_last=False), "nobody knows when it reads"),
    ):
        with pytest.raises(VramscopeError, match=reason) as refused:
            IndexSamplers(sampler)
        assert "vramscope.batch_size(" in refused.value.message


def as_before_2_6(self: Any) -> Iterator[list[int]]:
    """How PyTorch 2.4 and 2.5 do it: the size is read for each batch, either way."""
    if self.drop_last:
        indices = iter(self.sampler)
        while True:
            try:
                batch = [next(indices) for _ in range(self.batch_size)]
                yield batch
            except StopIteration:
                break
        return
    batch, number = [0] * self.batch_size, 0
    for index in self.sampler:
        batch[number] = index
        number += 1
        if number == self.batch_size:
            yield batch
            batch, number = [0] * self.batch_size, 0
    if number > 0:
        yield batch[:number]


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_older_versions_read_the_size_for_each_batch(
    monkeypatch: pytest.MonkeyPatch, size: int, drop_last: bool
) -> None:
    from torch.utils.data import BatchSampler

    monkeypatch.setattr(BatchSampler, "__iter__", as_before_2_6)
    batches = resized(plain(22, 4, drop_last=drop_last), 3, size)
    numbers = [number for batch in batches for number in batch]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) == 22 if not drop_last else len(numbers) > 22 - size
    assert {len(batch) for batch in batches[3:-1]} <= {size}


@needs_accelerate
def test_what_an_older_version_hides_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.data import BatchSampler

    monkeypatch.setattr(BatchSampler, "__iter__", as_before_2_6)
    with pytest.raises(VramscopeError, match="cannot be reached"):
        resized(shards(48, 8, drop_last=False, split=True)[0], 2, 2)
