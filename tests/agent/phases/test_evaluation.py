"""Evaluation is recognised in the loops that people write, and training never is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.recording_outbox import RecordingOutbox
from vramscope.notices import Notices
from vramscope.phases.evaluation import Evaluation
from vramscope.phases.phases import Phases
from vramscope.steps.torch_hooks import TorchHooks
from vramscope_protocol.messages import Event

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")

EVAL = 1


class Job:
    """A small job, whose clock goes on by a second with every fetch and every batch."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.outbox = RecordingOutbox()
        self.phases = Phases(self.clock, self.outbox.put, Notices())
        self.evaluation = Evaluation(self.phases)
        self.hooks = TorchHooks(self._stepped, self._before, self._after)
        self.model = torch.nn.Linear(2, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.train_loader = loader(8)
        self.eval_loader = loader(6)
        self.seen: list[int] = []
        """Phase of the process at every batch."""

    def _stepped(self, optimizer: Any) -> None:
        self.evaluation.optimizer_stepped()

    def _before(self, iterator: Any) -> None:
        self.evaluation.before_fetch(iterator, self.clock.time_ns())
        self.clock.advance(1)

    def _after(self, iterator: Any, is_over: bool) -> None:
        self.evaluation.after_fetch(is_over)

    def train_on(self, batch: Any) -> None:
        self.seen.append(self.phases.code())
        self.optimizer.zero_grad()
        self.model(batch).sum().backward()
        self.optimizer.step()
        self.clock.advance(1)

    def train(self) -> None:
        for batch in self.train_loader:
            self.train_on(batch)

    def evaluate_on(self, batch: Any) -> None:
        self.seen.append(self.phases.code())
        self.model(batch)
        self.clock.advance(1)

    def is_evaluating(self) -> list[bool]:
        seen, self.seen = self.seen, []
        return [code == EVAL for code in seen]

    def stretches_s(self) -> list[tuple[float, float]]:
        """Begin and end of every stretch told, in seconds."""
        self.phases.close()
        events = [each for each in self.outbox.messages if isinstance(each, Event)]
        times = [(event.data["start_ns"], event.data["end_ns"]) for event in events]
        begin_ns = FakeClock().time_ns()
        return [((start - begin_ns) / 1e9, (end - begin_ns) / 1e9) for start, end in times]


def loader(batches: int) -> Any:
    return torch.utils.data.DataLoader(torch.ones(batches, 2), batch_size=1)


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job()
    job.hooks.install()
    yield job
    job.hooks.remove()


def test_a_loop_without_gradients_is_evaluation_from_its_first_batch(job: Job) -> None:
    job.train()
    with torch.no_grad():
        for batch in job.eval_loader:
            job.evaluate_on(batch)
    job.train()
    assert job.is_evaluating() == [False] * 8 + [True] * 6 + [False] * 8
    # 8 batches and the fetch that finds the end are 17 s; 6 are 13 s.
    assert job.stretches_s() == [(17, 30)]


def test_inference_mode_and_a_decorated_function_are_the_same(job: Job) -> None:
    @torch.inference_mode()  # type: ignore[untyped-decorator]  # torch is untyped here
    def validate() -> None:
        for batch in job.eval_loader:
            job.evaluate_on(batch)

    validate()
    job.train()
    validate()
    assert job.is_evaluating() == [True] * 6 + [False] * 8 + [True] * 6


def test_no_grad_inside_the_loop_is_seen_after_a_few_batches_and_told_from_the_first(
    job: Job,
) -> None:
    job.train()
    for batch in job.eval_loader:
        with torch.no_grad():
            job.evaluate_on(batch)
    job.train()
    assert job.is_evaluating() == [False] * 10 + [True] * 4 + [False] * 8
    assert job.stretches_s() == [(17, 30)]


def test_a_loop_that_is_left_early_ends_when_training_goes_on(job: Job) -> None:
    job.train()
    iterator = iter(job.eval_loader)
    with torch.no_grad():
        for _ in range(3):
            job.evaluate_on(next(iterator))
    job.clock.advance(4)
    job.train()
    assert job.is_evaluating() == [False] * 8 + [True] * 3 + [False] * 8
    assert job.stretches_s() == [(17, 27)]


def test_what_is_saved_after_a_loop_that_was_left_early_is_not_evaluation(job: Job) -> None:
    with torch.no_grad():
        job.evaluate_on(next(iter(job.eval_loader)))
        job.evaluation.before_save()
        assert job.phases.code() == EVAL
    job.evaluation.before_save()
    assert job.phases.code() != EVAL


def test_a_loop_that_fails_on_its_first_batch_was_evaluation_and_so_is_the_next(job: Job) -> None:
    job.train()
    for _ in range(2):
        with contextlib.suppress(RuntimeError), torch.no_grad():
            for batch in job.eval_loader:
                job.evaluate_on(batch)
                raise RuntimeError("out of memory")
        job.train()
    assert job.is_evaluating() == [False] * 8 + ([True] + [False] * 8) * 2


def test_evaluation_with_gradients_on_is_not_claimed(job: Job) -> None:
    job.train()
    for batch in job.eval_loader:
        job.evaluate_on(batch)
    assert not any(job.is_evaluating())


def test_batches_gathered_before_they_are_used_are_training(job: Job) -> None:
    """As HF Trainer fetches all batches of one accumulated step at once."""
    iterator = iter(loader(40))
    for _ in range(8):
        for batch in [next(iterator) for _ in range(5)]:
            job.seen.append(job.phases.code())
            job.model(batch).sum().backward()
        job.optimizer.step()
    assert not any(job.is_evaluating())
    assert job.stretches_s() == []


def test_batches_that_are_fetched_one_ahead_are_training(job: Job) -> None:
    """As accelerate fetches: the next one first, then it hands out the one before."""
    for _ in range(3):
        iterator = iter(job.train_loader)
        ahead = next(iterator)
        for following in iterator:
            job.train_on(ahead)
            ahead = following
        job.train_on(ahead)
    assert not any(job.is_evaluating())
    assert job.stretches_s() == []


def test_a_captured_step_that_is_replayed_is_training(job: Job) -> None:
    """Nothing is recorded and no optimizer is called, but with the data of training."""
    job.train()
    for batch in job.train_loader:
        job.seen.append(job.phases.code())
        batch.add_(1)
    assert not any(job.is_evaluating())


def test_reading_all_data_before_training_is_not_evaluation(job: Job) -> None:
    for batch in job.train_loader:
        job.seen.append(job.phases.code())
        batch.sum()
    job.train()
    assert not any(job.is_evaluating())


def test_fetching_without_gradients_what_is_trained_on_is_believed_once(job: Job) -> None:
    for _ in range(2):
        iterator = iter(job.train_loader)
        for _ in range(8):
            with torch.no_grad():
                batch = next(iterator)
            job.train_on(batch)
    assert job.is_evaluating() == [True] + [False] * 15
    assert job.stretches_s() == []


def test_training_without_autograd_is_training(job: Job) -> None:
    """Zeroth-order methods compute no gradients at all, and accumulate over batches."""
    weight = next(job.model.parameters())
    with torch.no_grad():
        for number, batch in enumerate(job.train_loader):
            job.seen.append(job.phases.code())
            weight.grad = torch.ones_like(weight) * batch.sum()
            if number % 2:
                job.optimizer.step()
    assert job.is_evaluating() == [True, True] + [False] * 6
    assert job.stretches_s() == []


def test_gradients_computed_in_a_loop_without_them_make_it_none(job: Job) -> None:
    with torch.no_grad():
        for batch in job.eval_loader:
            job.seen.append(job.phases.code())
            with torch.enable_grad():
                job.model(batch).sum().backward()
    assert job.is_evaluating() == [True] + [False] * 5
    assert job.stretches_s() == []


def test_what_is_told_is_not_guessed_at(job: Job) -> None:
    job.train()
    told = job.phases.begin("validation", "user")
    with torch.no_grad():
        for batch in job.eval_loader:
            job.evaluate_on(batch)
    assert set(job.seen[8:]) == {told.code}
    job.phases.end(told)
    with torch.no_grad():
        for batch in job.eval_loader:
            job.evaluate_on(batch)
    assert job.is_evaluating() == [False] * 14 + [True] * 6


def test_several_loaders_one_after_the_other_are_one_evaluation(job: Job) -> None:
    job.train()
    for _ in range(2):
        for batch in job.eval_loader:
            with torch.no_grad():
                job.evaluate_on(batch)
    job.train()
    assert job.stretches_s() == [(17, 43)]
