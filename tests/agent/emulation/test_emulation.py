from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from vramscope.emulation import Emulation

pytestmark = pytest.mark.torch

Start = Callable[..., "Emulation"]
MIB = 1 << 20


def held(emulation: Emulation) -> tuple[int, int]:
    """Storages and their bytes that the device holds now."""
    gc.collect()
    stats = emulation.device.memory_stats()
    return stats["allocation"]["all"]["current"], stats["requested_bytes"]["all"]["current"]


def mlp() -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def nbytes(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def test_every_part_of_a_training_step_is_counted_and_freed_in_time(emulate: Start) -> None:
    emulation = emulate()
    model = mlp()
    parameters = nbytes(model.parameters())
    assert held(emulation) == (4, parameters)

    batch = torch.randn(32, 64)
    hidden_bytes, output_bytes = 32 * 128 * 4, 32 * 10 * 4
    output = model(batch)
    # The first layer's output is gone, ReLU's lives on in the backward graph alone.
    assert held(emulation) == (4 + 3, parameters + batch.nbytes + hidden_bytes + output_bytes)

    loss = output.square().mean()
    loss.backward()
    del output, loss
    assert held(emulation) == (4 + 1 + 4, 2 * parameters + batch.nbytes)

    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()
    counts_of_steps = 4 * 4
    assert held(emulation) == (9 + 12, 4 * parameters + batch.nbytes + counts_of_steps)

    optimizer.zero_grad()
    assert held(emulation)[1] == 3 * parameters + batch.nbytes + counts_of_steps

    del model, batch, optimizer
    assert held(emulation) == (0, 0)


def test_an_unused_graph_holds_its_activations(emulate: Start) -> None:
    emulation = emulate()
    weight = torch.ones(1000, requires_grad=True)
    loss = (weight * 2).exp().sum()
    assert held(emulation) == (3, 4000 + 4000 + 4)

    del loss
    assert held(emulation) == (1, 4000)


def test_views_and_in_place_operations_take_nothing(emulate: Start) -> None:
    emulation = emulate()
    tensor = torch.zeros(1000)
    kept = [tensor.view(10, 100), tensor[3:7], tensor.t(), tensor.add_(1), tensor.detach()]

    assert held(emulation) == (1, 4000)
    del tensor
    assert held(emulation) == (1, 4000)
    del kept
    assert held(emulation) == (0, 0)


def train(steps: int) -> tuple[list[float], Any]:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        output = torch.nn.functional.dropout(model(torch.randn(32, 64)), 0.1)
        loss = output.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def test_losses_and_weights_are_bit_identical(emulate: Start) -> None:
    plain_losses, plain_model = train(20)

    emulate()
    losses, model = train(20)

    assert losses == plain_losses
    for parameter, plain in zip(model.parameters(), plain_model.parameters(), strict=True):
        assert torch.equal(parameter, plain)


def test_too_much_raises_what_a_device_would_raise(emulate: Start) -> None:
    emulation = emulate(64 * MIB)
    kept = torch.empty(30 * MIB, dtype=torch.uint8)

    with pytest.raises(torch.cuda.OutOfMemoryError) as raised:
        torch.empty(50 * MIB, dtype=torch.uint8)

    text = str(raised.value)
    assert text.startswith("CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 (emulated) has")
    assert "total capacity of 64.00 MiB of which 34.00 MiB is free" in text
    assert "30.00 MiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but" in text
    stats = emulation.device.memory_stats()
    assert (stats["num_ooms"], stats["num_alloc_retries"]) == (1, 1)
    assert held(emulation) == (1, 30 * MIB)
    # As on a device, the job may go on with less.
    smaller = torch.empty(20 * MIB, dtype=torch.uint8)
    assert held(emulation)[1] == kept.nbytes + smaller.nbytes


def test_running_out_in_the_backward_reaches_the_caller(emulate: Start) -> None:
    emulation = emulate(50 * MIB)
    weight = torch.ones(3 * MIB, requires_grad=True)
    loss = (weight * 3 * weight).exp().sum()
    assert emulation.device.memory_stats()["num_ooms"] == 0

    with pytest.raises(torch.cuda.OutOfMemoryError, match="emulated"):
        loss.backward()

    del loss
    assert emulation.device.memory_stats()["num_ooms"] == 1
    assert held(emulation)[1] == weight.nbytes


def test_errors_of_the_job_pass_through(emulate: Start) -> None:
    emulate()

    with pytest.raises(RuntimeError, match="must match the size"):
        torch.ones(3) + torch.ones(4)


def test_tensors_made_out_of_sight_count_from_their_first_use(emulate: Start) -> None:
    import numpy

    made: list[Any] = []
    before = torch.ones(500)
    emulation = emulate()
    thread = threading.Thread(target=lambda: made.append(torch.ones(1000)))
    thread.start()
    thread.join()
    array = torch.from_numpy(numpy.ones(250, dtype="float32"))
    assert held(emulation)[1] <= array.nbytes

    made[0].add_(1)
    before.add_(1)
    array.add_(1)

    assert held(emulation) == (3, 4000 + 2000 + 1000)


def test_arguments_in_lists_and_by_keyword_are_seen(emulate: Start) -> None:
    one, other, out = torch.ones(100), torch.ones(200), torch.empty(300)
    emulation = emulate()

    torch.cat([one, other], out=out)

    assert held(emulation) == (3, 400 + 800 + 1200)


def test_resized_storages_are_followed(emulate: Start) -> None:
    emulation = emulate()
    tensor = torch.ones(1000)

    tensor.resize_(2000)
    assert held(emulation) == (1, 8000)
    tensor.untyped_storage().resize_(0)
    tensor.detach()
    assert held(emulation) == (0, 0)
    tensor.untyped_storage().resize_(8000)
    tensor.zero_()
    assert held(emulation) == (1, 8000)


def test_tensors_without_memory_are_passed_over(emulate: Start) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    emulation = emulate(2 * MIB)
    meta = torch.empty(1 << 30, device="meta") * 2
    with FakeTensorMode():
        fake = torch.nn.Linear(10_000, 10_000)(torch.empty(2, 10_000))
    sparse = torch.eye(4).to_sparse() * 2

    assert meta.shape == (1 << 30,)
    assert fake.shape == (2, 10_000)
    assert sparse.layout is torch.sparse_coo
    assert held(emulation)[0] == 0


def test_wrapper_tensors_count_by_what_they_hold(emulate: Start) -> None:
    tensor_type: Any = torch.Tensor

    class Wrapper(tensor_type):  # type: ignore[misc]  # torch is not type-checked
        inner: Any

        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return cls(func(*(getattr(arg, "inner", arg) for arg in args), **(kwargs or {})))

    emulation = emulate()
    doubled = Wrapper(torch.ones(1000)) * 2

    assert isinstance(doubled, Wrapper)
    assert held(emulation) == (1, 4000)


@pytest.mark.filterwarnings("ignore:.*autocast.*:FutureWarning")  # torch 2.4's own checkpoint
def test_transforms_checkpoints_and_higher_order_operators_work(emulate: Start) -> None:
    from torch.utils.checkpoint import checkpoint

    emulation = emulate()
    gradients = torch.func.vmap(torch.func.grad(lambda x: (x**2).sum()))(torch.ones(5, 7))
    assert torch.equal(gradients, torch.full((5, 7), 2.0))

    model, batch = mlp(), torch.randn(8, 64, requires_grad=True)
    for use_reentrant in (True, False):
        checkpoint(model, batch, use_reentrant=use_reentrant).sum().backward()
    assert batch.grad is not None

    del gradients, model, batch
    assert held(emulation) == (0, 0)


def test_compiled_functions_run_eagerly_and_are_seen(emulate: Start) -> None:
    emulation = emulate()
    compiled = torch.compile(lambda x: x.sin().cos(), fullgraph=True)
    tensor = torch.ones(1000)

    result = compiled(tensor)

    assert torch.equal(result, tensor.sin().cos())
    assert held(emulation) == (2, 8000)
    assert emulation.device.memory_stats()["allocation"]["all"]["allocated"] >= 3


def test_a_finalizer_of_the_job_may_run_operations_at_any_moment(emulate: Start) -> None:
    class Cycle:
        def __init__(self) -> None:
            self.me = self
            self.tensor = torch.ones(100)

        def __del__(self) -> None:
            results.append((self.tensor + 1).sum())

    results: list[Any] = []
    emulation = emulate()
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Cycle()
            emulation.device.memory_stats()
    finally:
        gc.set_threshold(*threshold)
    gc.collect()

    assert len(results) == 200
    results.clear()
    torch.ones(1)
    assert held(emulation) == (0, 0)


def test_reading_on_another_thread_while_training(emulate: Start) -> None:
    emulation = emulate()
    stop = threading.Event()
    problems: list[Any] = []

    def read() -> None:
        while not stop.is_set():
            stats = emulation.device.memory_stats()
            for name in ("allocated_bytes", "active_bytes", "reserved_bytes", "allocation"):
                pools = {pool: stat["current"] for pool, stat in stats[name].items()}
                if pools["all"] != pools["small_pool"] + pools["large_pool"]:
                    problems.append((name, pools))
            for segment in emulation.device.segments():
                if sum(block["size"] for block in segment["blocks"]) != segment["total_size"]:
                    problems.append(segment)

    thread = threading.Thread(target=read)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        train(10)
    finally:
        stop.set()
        sys.setswitchinterval(interval_s)
        thread.join()
    assert problems == []
    assert held(emulation) == (0, 0)


def test_a_forked_child_sees_nothing_and_never_waits(emulate: Start) -> None:
    emulation = emulate(64 * MIB)
    held_elsewhere, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with emulation._mirror.model():
            held_elsewhere.set()
            forked.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held_elsewhere.wait(10)
    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(10)
        try:
            torch.empty(1 << 28, dtype=torch.uint8)
            status = 0
        finally:
            os._exit(status)
    forked.set()
    thread.join()
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    torch.ones(10)
    assert emulation.device.memory_stats()["allocation"]["all"]["allocated"] == 1


def test_batches_of_loader_workers_count_when_they_arrive(emulate: Start) -> None:
    emulation = emulate()
    data = torch.utils.data.TensorDataset(torch.ones(8, 1000))
    assert held(emulation) == (1, 8 * 4000)

    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1)
    for (batch,) in loader:
        batch.add_(1)
        assert held(emulation)[1] >= 8 * 4000 + 4 * 4000
    del batch, data, loader

    assert held(emulation) == (0, 0)
