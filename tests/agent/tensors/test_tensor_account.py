"""Looks keep to their budget, see what changed, and say that they do not know when they do not."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.support.fake_clock import FakeClock  # noqa: E402
from tests.support.fake_device import FakeDevice  # noqa: E402
from vramscope.collectors.self_cost import SelfCost  # noqa: E402
from vramscope.tensors.category import NONE, PARAMETERS  # noqa: E402
from vramscope.tensors.census import Census  # noqa: E402
from vramscope.tensors.modules import Modules  # noqa: E402
from vramscope.tensors.tensor_account import (  # noqa: E402
    CHANGE_SHARE,
    PROMPT_LOOKS,
    SCAN_INTERVAL_NS,
    SHARE,
    SHORTEST_INTERVAL_NS,
    TensorAccount,
)
from vramscope_protocol.columns import UNKNOWN  # noqa: E402
from vramscope_protocol.messages import Event  # noqa: E402

pytestmark = pytest.mark.torch

nn = torch.nn
WEIGHT_BYTES = 64 * 64 * 4


class Job:
    """A training loop whose steps the account is told of, and a clock that it sets itself."""

    def __init__(self, *, scans: bool = False) -> None:
        self.clock = FakeClock()
        self.device = FakeDevice()
        self.events: list[Event] = []
        self.step = 0
        self.looks = 0
        self.is_on_device = True
        modules = Modules()
        modules.has_missed_some = scans
        self.account = TensorAccount(
            self._storage,
            modules,
            current_step=lambda: self.step,
            clock=self.clock,
            emit=self.events.append,
            self_cost=SelfCost(lambda: 0),
        )
        self.account.install()
        self.model: Any = None
        self.optimizer: Any = None

    def build(self) -> None:
        self.model = nn.Linear(64, 64, bias=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def train(self, *, pass_ns: int = 0, set_to_none: bool = True) -> dict[str, int]:
        """One step; what its row says."""
        self.optimizer.zero_grad(set_to_none=set_to_none)
        loss = self.model(torch.ones(1, 64)).sum()
        self.account.backward_began()
        loss.backward()
        self.optimizer.step()
        self.account.saw_optimizer(self.optimizer)
        self.step += 1
        self.clock.advance(pass_ns / 1e9)
        return self.row()

    def row(self) -> dict[str, int]:
        values = self.account.take()
        names = [name.split(".")[1].removesuffix("_bytes") for name in self.account.names]
        return dict(zip(names, values, strict=True))

    def _storage(self, tensor: Any) -> tuple[int, int] | None:
        self.looks += 1
        return self.device.storage(tensor) if self.is_on_device else None


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    yield made
    made.account.remove()


@pytest.fixture
def look_ms(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """How long every look takes, as measured by a clock that the test sets."""
    cost = {"ms": 1.0}
    now = {"ns": 0}

    def perf_counter_ns() -> int:
        now["ns"] += int(cost["ms"] * 1e6)
        return now["ns"]

    monkeypatch.setattr(time, "perf_counter_ns", perf_counter_ns)
    return cost


def test_nothing_is_known_before_the_first_step(job: Job) -> None:
    assert set(job.row().values()) == {UNKNOWN}
    assert job.looks == 0


def test_the_first_step_has_every_category(job: Job) -> None:
    job.build()
    assert job.train() == {
        "parameters": WEIGHT_BYTES,
        "gradients": WEIGHT_BYTES,
        "optimizer_state": WEIGHT_BYTES,
        "buffers": 0,
        "gradients_kept": 0,
    }


def test_what_was_told_last_and_what_there_is_now(job: Job) -> None:
    assert job.account.latest() == {}
    job.build()
    now = job.account.count_now()
    assert sum(now.bytes_of.values()) == WEIGHT_BYTES
    assert [owned.name for owned in now.owned] == ["weight"]
    row = job.train()
    assert job.account.latest()["category.parameters_bytes"] == WEIGHT_BYTES
    assert len(job.account.latest()) == len(row)
    elsewhere = job.account.count_now(lambda tensor: None)
    assert sum(elsewhere.bytes_of.values()) == 0


def test_gradients_that_are_kept_are_told_from_those_that_are_not(job: Job) -> None:
    job.build()
    job.train()
    later = 10 * SHORTEST_INTERVAL_NS
    job.clock.advance(later / 1e9)
    assert job.train(set_to_none=False)["gradients_kept"] == WEIGHT_BYTES
    job.clock.advance(later / 1e9)
    assert job.train(set_to_none=True)["gradients_kept"] == 0


def test_between_two_looks_the_last_numbers_are_repeated(
    job: Job, look_ms: dict[str, float]
) -> None:
    job.build()
    first = job.train()
    looks = job.looks
    # One at the gradients that were kept, and one at the end of the step.
    interval_ns = int(2 * look_ms["ms"] * 1e6 / SHARE)
    assert [job.train(pass_ns=interval_ns // 5) for _ in range(4)] == [first] * 4
    assert job.looks == looks
    job.train(pass_ns=interval_ns)
    assert job.looks > looks


def test_a_look_that_costs_more_comes_less_often(job: Job, look_ms: dict[str, float]) -> None:
    job.build()
    look_ms["ms"] = 20.0
    job.train()
    looks = job.looks
    for _ in range(9):
        job.train(pass_ns=int(20e6 / SHARE) // 10)
    assert job.looks == looks


def test_what_comes_and_goes_is_seen_sooner(job: Job, look_ms: dict[str, float]) -> None:
    job.build()
    job.train()
    added = nn.Linear(64, 64, bias=False)
    assert job.train()["parameters"] == WEIGHT_BYTES
    row = job.train(pass_ns=int(look_ms["ms"] * 2e6 / CHANGE_SHARE))
    assert row["parameters"] == 2 * WEIGHT_BYTES
    assert added is not None


def test_the_first_optimizers_are_looked_at_as_soon_as_they_step(
    job: Job, look_ms: dict[str, float]
) -> None:
    job.build()
    look_ms["ms"] = 1000.0
    job.train()
    models = [nn.Linear(64, 64, bias=False) for _ in range(PROMPT_LOOKS + 1)]
    for number, model in enumerate(models):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        model.weight.grad = torch.ones_like(model.weight)
        optimizer.step()
        models[number] = (model, optimizer)
        job.account.saw_optimizer(optimizer)
        is_prompt = number < PROMPT_LOOKS - 1  # one was the first of all
        assert (job.row()["optimizer_state"] == (number + 2) * WEIGHT_BYTES) is is_prompt


def test_what_is_not_on_the_device_is_not_known_there(job: Job) -> None:
    job.is_on_device = False
    job.build()
    row = job.train()
    assert row["parameters"] == row["gradients"] == row["optimizer_state"] == UNKNOWN


def test_nothing_of_the_job_lives_longer(job: Job) -> None:
    job.build()
    job.train()
    job.account.owners()
    job.clock.advance(3600)
    job.train()
    watched = [weakref.ref(job.model), weakref.ref(job.optimizer), weakref.ref(job.model.weight)]
    job.model = job.optimizer = None
    gc.collect()
    assert [ref() for ref in watched] == [None] * 3
    job.clock.advance(3600)
    assert set(job.row().values()) - {0} == {UNKNOWN}


def test_modules_from_before_are_looked_for_once_and_the_cost_is_told() -> None:
    model = nn.Linear(64, 64, bias=False)
    job = Job(scans=True)
    try:
        job.model, job.optimizer = model, torch.optim.SGD(model.parameters(), lr=0.1)
        row = job.train()
        while not job.events:
            # In turns; half of the modules are no answer.
            assert set(row.values()) == {UNKNOWN}
            row = job.train(pass_ns=SCAN_INTERVAL_NS)
        assert row["parameters"] >= WEIGHT_BYTES
        job.clock.advance(3600)
        job.train()
        (event,) = job.events
        assert event.kind == "tensors"
        assert event.data["is_complete"] is True
        assert event.data["modules"] >= 1
        assert event.data["took_us"] >= 0
        assert "modules among" in event.text
    finally:
        job.account.remove()


def test_a_job_without_modules_and_optimizers_is_not_looked_at(job: Job) -> None:
    job.account.backward_began()
    assert set(job.row().values()) == {UNKNOWN}


def test_in_the_backward_nothing_is_counted(job: Job) -> None:
    job.build()
    rows: list[dict[str, int]] = []
    job.model.weight.register_hook(lambda gradient: rows.append(job.row()))
    job.model(torch.ones(1, 64)).sum().backward()
    assert [set(row.values()) for row in rows] == [{UNKNOWN}]


def test_the_first_owners_are_made_soon(job: Job, look_ms: dict[str, float]) -> None:
    job.build()
    job.train()
    soon_ns = int(look_ms["ms"] * 2e6 / CHANGE_SHARE)
    job.account.owners()
    job.train(pass_ns=soon_ns)
    first = job.account.owners()
    assert first is not None
    # Newer ones come with the looks that are taken anyway.
    job.train(pass_ns=soon_ns)
    assert job.account.owners() is first
    job.train(pass_ns=int(look_ms["ms"] * 4e6 / SHARE))
    second = job.account.owners()
    assert second is not None
    assert second.step > first.step


def test_short_steps_are_not_even_asked_what_has_changed(job: Job) -> None:
    job.build()
    job.train()
    job.clock.advance(SHORTEST_INTERVAL_NS / 1e9)
    asked: list[int] = []

    class Optimizer:
        """One that counts how often it is looked at."""

        param_groups: tuple[Any, ...] = ()

        @property
        def state(self) -> dict[Any, Any]:
            asked.append(job.step)
            return {}

    watched = Optimizer()
    job.account.saw_optimizer(watched)
    job.clock.advance(3600)
    job.train()
    looked = len(asked)
    for _ in range(100):
        job.train(pass_ns=SHORTEST_INTERVAL_NS // 100)
    assert len(asked) - looked <= 3


def test_owners_are_there_once_somebody_has_asked(job: Job) -> None:
    job.build()
    job.train()
    assert job.account.owners() is None
    job.clock.advance(3600)
    assert job.account.owners() is None
    row = job.train()
    owners = job.account.owners()
    assert owners is not None
    assert owners.step == 2
    address = job.model.weight.untyped_storage().data_ptr()
    assert owners.category_of(address) == (PARAMETERS, "weight")
    assert owners.category_of(address + 5) == (PARAMETERS, "weight")
    assert owners.category_of(1) == (NONE, "")
    assert row["parameters"] == WEIGHT_BYTES
    # Nobody asks any more: names are not made any more.
    job.clock.advance(3600)
    job.train()
    assert job.account.owners() is owners


@pytest.mark.expects_guarded_errors
def test_a_count_that_fails_makes_all_of_it_unknown(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.build()
    job.train()

    def fail(*_: Any) -> None:
        raise RuntimeError("a storage that cannot be asked")

    monkeypatch.setattr(Census, "count", fail)
    job.clock.advance(3600)
    row = job.train()
    assert set(row.values()) == {UNKNOWN}
    # It is not tried again at every step, and it recovers.
    monkeypatch.undo()
    assert set(job.train().values()) == {UNKNOWN}
    job.clock.advance(3600)
    assert job.train()["parameters"] == WEIGHT_BYTES


def test_after_removal_and_after_a_fork_nothing_is_seen(job: Job) -> None:
    job.account.forget_after_fork()
    job.build()
    assert set(job.row().values()) == {UNKNOWN}
    job.account.remove()
    assert nn.modules.module._global_parameter_registration_hooks == {}
