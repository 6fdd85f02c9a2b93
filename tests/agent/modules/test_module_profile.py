"""A few steps are watched module by module, and every hook goes again."""

from __future__ import annotations

import gc
import os
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.modules.module_account import Reading
from vramscope.modules.module_profile import ModuleProfile, compiled_reason

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

MIB = 1 << 20
WIDTH = 512
"""A square matrix of this width is one MiB, of which the allocator gives a whole number."""


class Readings:
    """The allocator's counters, with a peak of our own that each reading begins anew."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.is_busy = False

    def __call__(self, in_backward: bool) -> Reading | None:
        del in_backward
        if self.is_busy:
            return None
        counter = self.device.memory_stats()["allocated_bytes"]["all"]
        self.device.reset_peaks()
        return Reading(counter["current"], counter["peak"])


@pytest.fixture
def readings() -> Iterator[Readings]:
    from vramscope.emulation import start_emulation

    emulation = start_emulation(1 << 30)
    yield Readings(emulation.device)
    emulation.stop()


class Wide(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is untyped here
    """Makes eight times as many activations as it has inputs, and gives one of them back."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - torch is untyped here
        self.up = torch.nn.Linear(WIDTH, 8 * WIDTH, bias=False)
        self.down = torch.nn.Linear(8 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Any) -> Any:
        return self.down(torch.relu(self.up(x)))


def make_model() -> Any:
    return torch.nn.ModuleDict(
        {"narrow": torch.nn.Linear(WIDTH, WIDTH, bias=False), "wide": Wide()}
    )


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is untyped here
    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - torch is untyped here
        self.parts = make_model()

    def forward(self, x: Any) -> Any:
        return self.parts["wide"](self.parts["narrow"](x)).sum()


def train(model: Any, steps: int, profile: ModuleProfile) -> dict[str, Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        model(torch.ones(WIDTH, WIDTH)).backward()
        optimizer.step()
        optimizer.zero_grad()
        if profile.step_ended():
            break
    return {row["path"]: row for row in profile.report()["modules"]}


def hooks() -> int:
    module: Any = torch.nn.modules.module
    return len(module._global_forward_pre_hooks) + len(module._global_forward_hooks)


def test_each_module_is_told_what_it_holds_and_keeps(readings: Readings) -> None:
    profile = ModuleProfile(readings, steps=3)
    profile.start()
    rows = train(Model(), 10, profile)
    parts = ["parts.narrow", "parts.wide", "parts.wide.up", "parts.wide.down"]
    assert list(rows) == ["Model", "parts", *parts]
    assert rows["Model"]["parameters_bytes"] == 17 * MIB
    assert rows["parts.wide"]["parameters_bytes"] == 16 * MIB
    # The outputs of up and relu and down; the input of relu is not needed once it is done.
    assert rows["parts.narrow"]["kept_bytes"] == MIB
    assert rows["parts.wide.up"]["kept_bytes"] == 8 * MIB
    assert rows["parts.wide"]["kept_bytes"] == 9 * MIB
    # While relu runs, its input and its output.
    assert rows["parts.wide"]["forward_extra_bytes"] == 16 * MIB
    # The output of "down" is summed, and gone.
    assert rows["Model"]["kept_bytes"] == 9 * MIB + 512
    assert {row["calls"] for path, row in rows.items() if path != "parts"} == {1}
    assert profile.report()["steps"] == 3


def test_the_peak_of_the_backward_is_found_in_the_module_that_has_it(readings: Readings) -> None:
    profile = ModuleProfile(readings, steps=2)
    profile.start()
    rows = train(Model(), 2, profile)
    # In the backward of "down": the gradients of its weight (8), its input (8) and its output.
    highest = max(row["backward_peak_bytes"] for row in rows.values())
    assert rows["parts.wide"]["backward_peak_bytes"] == highest
    assert rows["parts.wide.down"]["backward_extra_bytes"] >= 16 * MIB
    assert rows["parts.narrow"]["backward_peak_bytes"] < highest


def test_no_hook_and_no_tensor_is_left_afterwards(readings: Readings) -> None:
    before = hooks()
    profile = ModuleProfile(readings, steps=1)
    profile.start()
    assert hooks() == before + 2
    model = Model()
    loss = model(torch.ones(WIDTH, WIDTH))
    assert profile.step_ended()
    assert hooks() == before
    taken = profile.report()["readings"]
    loss.backward()
    assert profile.report()["readings"] == taken
    freed = weakref.ref(model)
    del loss, model
    gc.collect()
    assert freed() is None


def test_checkpointed_modules_are_seen_to_run_again(readings: Readings) -> None:
    class Checkpointed(Model):
        def forward(self, x: Any) -> Any:
            wide, narrow = self.parts["wide"], self.parts["narrow"]
            again = torch.utils.checkpoint.checkpoint
            return again(wide, narrow(x), use_reentrant=False).sum()

    profile = ModuleProfile(readings, steps=1)
    profile.start()
    rows = train(Checkpointed(), 1, profile)
    assert rows["parts.wide"]["recomputed"]
    assert not rows["parts.narrow"]["recomputed"]
    assert rows["parts.wide"]["kept_bytes"] == MIB
    assert rows["parts.wide"]["backward_extra_bytes"] > rows["parts.wide"]["kept_bytes"]


def test_a_module_that_raises_and_one_of_another_thread_do_no_harm(readings: Readings) -> None:
    class Raises(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is untyped here
        def forward(self, x: Any) -> Any:
            raise KeyError(x)

    profile = ModuleProfile(readings, steps=1)
    profile.start()
    with pytest.raises(KeyError):
        Raises()(1)
    elsewhere = threading.Thread(target=lambda: torch.nn.Tanh()(torch.ones(2)))
    elsewhere.start()
    elsewhere.join()
    rows = train(Model(), 1, profile)
    assert "Tanh" not in {row["type"] for row in rows.values()}
    assert rows["Model.parts.wide.up"]["kept_bytes"] == 8 * MIB


def test_while_the_device_is_busy_nothing_is_read(readings: Readings) -> None:
    readings.is_busy = True
    profile = ModuleProfile(readings, steps=1)
    profile.start()
    rows = train(Model(), 1, profile)
    assert {row["kept_bytes"] for row in rows.values()} == {None}


def test_a_job_that_compiles_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    dynamo = types.ModuleType("torch._dynamo.utils")
    monkeypatch.setitem(sys.modules, dynamo.__name__, dynamo)
    assert compiled_reason() is None
    dynamo.__dict__["counters"] = {"frames": {"total": 1}}
    assert "torch.compile" in (compiled_reason() or "")


def test_parts_that_are_called_on_their_own_have_their_paths_in_the_model(
    readings: Readings,
) -> None:
    parts = make_model()
    other = torch.nn.Linear(2, 2)
    profile = ModuleProfile(readings, steps=1, roots=lambda: [other, parts])
    profile.start()
    parts["wide"](parts["narrow"](torch.ones(WIDTH, WIDTH))).sum().backward()
    assert profile.step_ended()
    rows = {row["path"]: row for row in profile.report()["modules"]}
    assert rows["wide.up"]["kept_bytes"] == 8 * MIB
    assert rows["Linear"]["parameters_bytes"] == 24


def test_a_forked_child_is_not_watched() -> None:
    asked: list[bool] = []

    def read(in_backward: bool) -> Reading:
        asked.append(in_backward)
        return Reading(0, 0)

    layer = torch.nn.Linear(2, 2)
    profile = ModuleProfile(read, steps=1)
    profile.start()
    asked.clear()
    child = os.fork()
    if child == 0:
        layer(torch.ones(1, 2))
        os._exit(len(asked))
    assert os.waitpid(child, 0)[1] == 0
    profile.stop()


@pytest.mark.filterwarnings("ignore:Using `torch.compile:UserWarning")  # PyTorch's, of any hook
def test_a_model_that_is_compiled_meanwhile_is_compiled_as_without_the_hooks() -> None:
    profile = ModuleProfile(lambda in_backward: Reading(0, 0), steps=1)
    profile.start()
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        del inputs
        graphs.append(graph)
        return graph

    layer = torch.nn.Linear(2, 2)

    def double(x: Any) -> Any:
        return layer(x) * 2

    torch.compile(double, backend=backend, fullgraph=True)(torch.ones(1, 2))
    profile.stop()
    assert len(graphs) == 1


def test_what_is_no_tensor_is_not_asked_for_its_graph(readings: Readings) -> None:
    asked: list[str] = []

    class Recorder:
        """As a tracer's proxy: it notes whatever it is asked for."""

        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return self

    class Tracing(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is untyped here
        def forward(self) -> Any:
            return Recorder(), {"more": [Recorder()]}

    profile = ModuleProfile(readings, steps=1)
    profile.start()
    Tracing()()
    profile.stop()
    assert asked == []
