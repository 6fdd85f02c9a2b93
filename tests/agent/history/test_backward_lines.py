"""What a backward pass allocates names the line of the forward pass, and nothing stays behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vramscope.history.backward_lines import PREFIX, BackwardLines, is_supported
from vramscope.history.pytorch_history import PytorchHistory

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture
def lines(emulate: Callable[..., Any]) -> Iterator[BackwardLines]:
    emulate()
    if not is_supported():
        pytest.skip(f"torch {torch.__version__} has no memory metadata")
    lines = BackwardLines()
    yield lines
    lines.remove()


def forward(weight: Any, data: Any) -> Any:
    hidden = torch.relu(data @ weight)  # the line that the test looks for
    return (hidden @ weight).sum()


LINE = forward.__code__.co_firstlineno + 1


def alloc_texts(snapshot: dict[str, Any]) -> set[str]:
    return {
        entry["user_metadata"]
        for entry in snapshot["device_traces"][0]
        if entry["action"] == "alloc" and entry["user_metadata"]
    }


def test_allocations_of_the_backward_carry_their_forward_line(lines: BackwardLines) -> None:
    history = PytorchHistory(emulated=True)
    weight = torch.ones(256, 256, requires_grad=True)
    history.start("all", stacks=True, max_entries=1000)
    lines.install()
    assert lines.is_installed
    forward(weight, torch.ones(64, 256)).backward()
    texts = alloc_texts(history.snapshot(traces=True))
    history.stop()
    assert f"{PREFIX}{__file__}:{LINE} forward" in texts
    assert all(text.startswith(f"{PREFIX}{__file__}:") for text in texts)


def test_outside_of_the_backward_nothing_is_marked(lines: BackwardLines) -> None:
    memory: Any = torch.cuda.memory
    memory._set_memory_metadata("the job's own")
    weight = torch.ones(8, 8, requires_grad=True)
    lines.install()
    forward(weight, torch.ones(8, 8)).backward()
    assert memory._get_memory_metadata() == "the job's own"
    memory._set_memory_metadata("")


def test_a_graph_that_is_kept_keeps_no_hook(lines: BackwardLines) -> None:
    weight = torch.ones(8, 8, requires_grad=True)
    lines.install()
    loss = forward(weight, torch.ones(8, 8))
    loss.backward(retain_graph=True)
    lines.remove()
    calls: list[str] = []
    memory: Any = torch.cuda.memory
    before = memory._set_memory_metadata
    memory._set_memory_metadata = calls.append
    try:
        loss.backward()
    finally:
        memory._set_memory_metadata = before
    assert calls == []


def test_pytorch_is_as_it_was(lines: BackwardLines) -> None:
    run = torch.autograd._engine_run_backward
    lines.install()
    assert torch.is_anomaly_enabled()
    assert not torch.is_anomaly_check_nan_enabled()
    lines.remove()
    assert torch.autograd._engine_run_backward is run
    assert not torch.is_anomaly_enabled()


def test_a_jobs_own_anomaly_mode_stays_on(lines: BackwardLines) -> None:
    with torch.autograd.set_detect_anomaly(True):
        lines.install()
        lines.remove()
        assert torch.is_anomaly_enabled()
        assert torch.is_anomaly_check_nan_enabled()


def test_a_backward_that_fails_is_the_jobs_and_leaves_no_hook(lines: BackwardLines) -> None:
    function: Any = torch.autograd.Function

    class Failing(function):  # type: ignore[misc]  # torch is not type-checked
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value * 2

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise ValueError("the job's own")

    value = torch.ones(2, requires_grad=True)
    lines.install()
    with pytest.warns(UserWarning, match="Error detected"), pytest.raises(ValueError, match="own"):
        Failing.apply(value).sum().backward()
    assert not any(lines._handles.values())


def test_a_graph_made_before_runs_as_ever(lines: BackwardLines) -> None:
    weight = torch.ones(8, 8, requires_grad=True)
    loss = forward(weight, torch.ones(8, 8))
    lines.install()
    loss.backward()
    assert weight.grad is not None


def test_a_forked_child_does_nothing_and_is_as_quick_as_before(lines: BackwardLines) -> None:
    lines.install()
    pid = os.fork()
    if pid == 0:
        lines.forget_after_fork()
        os._exit(int(torch.is_anomaly_enabled() or lines.is_installed))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert torch.is_anomaly_enabled()


def test_a_backward_inside_another_one_leaves_the_outer_ones_marks(lines: BackwardLines) -> None:
    """Activation checkpointing runs the forward again, and its backward, within a backward."""
    checkpoint: Any = pytest.importorskip("torch.utils.checkpoint").checkpoint
    history = PytorchHistory(emulated=True)
    weight = torch.ones(256, 256, requires_grad=True)

    def outer(data: Any) -> Any:
        inner = checkpoint(torch.relu, data @ weight, use_reentrant=True)
        return (inner * 2).sum()

    history.start("all", stacks=True, max_entries=1000)
    lines.install()
    outer(torch.ones(64, 256, requires_grad=True)).backward()
    texts = alloc_texts(history.snapshot(traces=True))
    history.stop()
    first_line = outer.__code__.co_firstlineno + 1
    assert f"{PREFIX}{__file__}:{first_line} outer" in texts
    assert not any(lines._handles.values())
