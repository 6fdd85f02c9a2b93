"""Modules are seen however they came to be, live no longer, and are built as without the agent."""

from __future__ import annotations

import copy
import gc
import io
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.tensors import modules as modules_module  # noqa: E402
from vramscope.tensors.modules import Modules  # noqa: E402

pytestmark = pytest.mark.torch

nn = torch.nn
HOOKS = ("parameter", "buffer", "module")


def hooks() -> list[int]:
    """How many global hooks of each kind there are."""
    return [len(getattr(nn.modules.module, f"_global_{kind}_registration_hooks")) for kind in HOOKS]


@pytest.fixture
def modules() -> Iterator[Modules]:
    made = Modules()
    made.install()
    yield made
    made.remove()
    assert hooks() == [0, 0, 0]


def test_modules_with_parameters_buffers_or_children_are_seen(modules: Modules) -> None:
    linear = nn.Linear(2, 2)
    norm = nn.BatchNorm1d(2, affine=False)
    parent = nn.Sequential(nn.ReLU())
    ignored = nn.ReLU()
    alive = modules.alive()
    assert [each for each in (linear, norm, parent) if each not in alive] == []
    assert ignored not in alive
    assert modules.seen == 3


def test_an_attribute_that_is_none_makes_no_module_known(modules: Modules) -> None:
    nn.CrossEntropyLoss()
    nn.Identity().register_parameter("nothing", None)
    assert modules.seen == 0


def test_copies_and_unpickled_modules_are_seen(modules: Modules) -> None:
    original = nn.Linear(2, 2)
    copied = copy.deepcopy(original)
    file = io.BytesIO()
    torch.save(original, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    alive = {id(each) for each in modules.alive()}
    assert {id(original), id(copied), id(loaded)} <= alive
    assert torch.equal(original.weight, loaded.weight)


def test_a_module_is_held_by_nobody_but_the_job(modules: Modules) -> None:
    linear = nn.Linear(2, 2)
    watched = weakref.ref(linear)
    assert modules.alive() == [linear]
    del linear
    gc.collect()
    assert watched() is None
    assert modules.alive() == []


def test_an_address_that_is_used_again_is_another_module(modules: Modules) -> None:
    for number in range(1, 200):
        linear = nn.Linear(1, 1)
        assert modules.alive() == [linear]
        assert modules.seen == number
        del linear


def test_modules_from_before_are_known_to_be_missed(modules: Modules) -> None:
    assert modules.has_missed_some


def test_modules_that_are_given_are_known_as_well(modules: Modules) -> None:
    modules.remove()
    linear = nn.Linear(2, 2)
    assert modules.alive() == []
    modules.add(linear)
    modules.add(linear)
    assert (modules.alive(), modules.seen) == ([linear], 1)


def test_after_removal_pytorch_is_as_it_was() -> None:
    restored = nn.Module.__setstate__
    made = Modules()
    made.install()
    assert hooks() == [1, 1, 1]
    assert nn.Module.__setstate__ is not restored
    made.remove()
    assert hooks() == [0, 0, 0]
    assert nn.Module.__setstate__ is restored
    nn.Linear(2, 2)
    assert made.alive() == []


def test_hooks_of_others_work_before_and_after() -> None:
    seen: list[str] = []
    register = nn.modules.module.register_module_parameter_registration_hook
    other = register(lambda module, name, parameter: seen.append(name))
    made = Modules()
    made.install()
    # Somebody may be going through the hooks: ours joins them where nobody does.
    assert hooks() == [1, 1, 1]
    made.hook_at_boundary()
    assert hooks() == [2, 1, 1]
    linear = nn.Linear(2, 2)
    assert seen == ["weight", "bias"]
    assert made.alive() == [linear]

    made.remove()
    nn.Linear(2, 2)
    assert seen == ["weight", "bias"] * 2
    other.remove()
    nn.Linear(2, 2)
    assert seen == ["weight", "bias"] * 2
    assert made.alive() == []
    nn.modules.module._global_parameter_registration_hooks.clear()


def test_in_a_forked_child_nothing_is_noted(modules: Modules) -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        modules.forget_after_fork()
        linear = nn.Linear(2, 2)
        copy.deepcopy(linear)
        os.write(writer, bytes([modules.seen]))
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reader, 1) == b"\0"
    os.close(reader)
    os.close(writer)


def test_modules_may_be_built_on_many_threads_while_the_agent_comes_and_goes() -> None:
    stop = threading.Event()
    errors: list[BaseException] = []

    def build() -> None:
        try:
            while not stop.is_set():
                nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        made = Modules()
        made.install()
        made.alive()
        made.remove()
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.expects_guarded_errors
def test_an_error_of_ours_does_not_reach_the_job(
    modules: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(modules_module, "partial", fail)
    assert nn.Linear(2, 3).weight.shape == (3, 2)


def test_compiled_code_is_not_compiled_again_because_of_the_hooks() -> None:
    compilations: list[int] = []

    def backend(graph: Any, examples: Any) -> Any:
        del examples
        compilations.append(len(graph.graph.nodes))
        return graph.forward

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    compiled = torch.compile(model, backend=backend)
    batch = torch.ones(1, 2)
    expected = compiled(batch)
    made = Modules()
    made.install()
    assert torch.equal(compiled(batch), expected)
    made.remove()
    assert torch.equal(compiled(batch), expected)
    assert len(compilations) == 1


class Averaging(nn.Module):  # type: ignore[misc, name-defined]  # torch is untyped here
    """Assigns a buffer in its forward, which has PyTorch call the registration hooks."""

    average: Any

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - torch is untyped here
        self.register_buffer("average", torch.zeros(2))

    def forward(self, x: Any) -> Any:
        self.average = self.average * 0.5 + x
        return self.average.sum()


def test_a_forward_that_assigns_a_buffer_is_compiled_in_one_graph(modules: Modules) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        del inputs
        graphs.append(graph)
        return graph

    module = Averaging()
    compiled = torch.compile(module, backend=backend, fullgraph=True)
    assert [float(compiled(torch.ones(2))) for _ in range(3)] == [2.0, 3.0, 3.5]
    assert len(graphs) == 1
    assert module in modules.alive()
