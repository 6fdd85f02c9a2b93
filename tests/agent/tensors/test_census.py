"""Categories equal what PyTorch's public names say, for models trained in many ways."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from collections.abc import Iterable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.support.fake_device import FakeDevice  # noqa: E402
from tests.support.tensor_counts import counted  # noqa: E402
from vramscope.tensors.category import (  # noqa: E402
    BUFFERS,
    GRADIENTS,
    OPTIMIZER_STATE,
    PARAMETERS,
)
from vramscope.tensors.census import BLOCK_BYTES, Census  # noqa: E402

pytestmark = pytest.mark.torch

nn = torch.nn
CODES = {
    "parameters": PARAMETERS,
    "gradients": GRADIENTS,
    "optimizer_state": OPTIMIZER_STATE,
    "buffers": BUFFERS,
}


def census_of(models: Iterable[Any], optimizers: Iterable[Any], *, names: bool = True) -> Census:
    census = Census(FakeDevice().storage, names=names)
    modules = [module for model in models for module in model.modules()]
    census.count(modules, optimizers)
    return census


def found(census: Census) -> dict[str, int]:
    return {name: census.bytes_of[code] for name, code in CODES.items()}


def assert_as_counted(models: list[Any], optimizers: list[Any]) -> Census:
    """Within 1 % of the independent count, besides the rounding of each storage to whole blocks."""
    census = census_of(models, optimizers)
    for name, expected in counted(models, optimizers, "cpu").items():
        storages = sum(each.code == CODES[name] for each in census.owned)
        measured = found(census)[name]
        assert expected <= measured <= expected * 1.01 + storages * BLOCK_BYTES, name
    return census


def names_of(census: Census, code: int) -> list[str]:
    return [each.name for each in census.owned if each.code == code]


def mlp(width: int = 64) -> Any:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


def train(model: Any, optimizer: Any, *, steps: int = 2, width: int = 64) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, width)).square().mean().backward()
        optimizer.step()


def gpt2(**options: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=2,
        n_embd=128,
        n_head=4,
        vocab_size=1000,
        n_positions=64,
        bos_token_id=0,
        eos_token_id=0,
        **options,
    )
    return transformers.GPT2LMHeadModel(config)


def fine_tune(model: Any, optimizer: Any, *, amp: bool = False) -> None:
    tokens = torch.randint(0, 1000, (2, 32))
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=amp):
            logits = model(tokens).logits
            loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
        loss.backward()
        optimizer.step()


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable` is deprecated")
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("amp", [True, False])
@pytest.mark.parametrize("checkpointing", [True, False])
def test_a_transformer_with_adamw(tied: bool, amp: bool, checkpointing: bool) -> None:
    model = gpt2(tie_word_embeddings=tied)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters())
    fine_tune(model, optimizer, amp=amp)
    census = assert_as_counted([model], [optimizer])
    assert "transformer.wte.weight" in names_of(census, PARAMETERS)
    assert ("lm_head.weight" in names_of(census, PARAMETERS)) is not tied
    assert "exp_avg of transformer.h.1.attn.c_attn.weight" in names_of(census, OPTIMIZER_STATE)
    assert "gradient of transformer.ln_f.bias" in names_of(census, GRADIENTS)


def test_frozen_layers_have_parameters_and_nothing_else() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam(each for each in model.parameters() if each.requires_grad)
    train(model, optimizer)
    census = assert_as_counted([model], [optimizer])
    assert names_of(census, PARAMETERS) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert names_of(census, GRADIENTS) == ["gradient of 2.weight", "gradient of 2.bias"]


def test_two_models_with_an_optimizer_each() -> None:
    generator, critic = mlp(), nn.Sequential(nn.BatchNorm1d(64), nn.Linear(64, 1))
    optimizers = [
        torch.optim.Adam(generator.parameters()),
        torch.optim.SGD(critic.parameters(), lr=0.1, momentum=0.9),
    ]
    for optimizer in optimizers:
        optimizer.zero_grad()
    critic(generator(torch.randn(4, 64))).mean().backward()
    for optimizer in optimizers:
        optimizer.step()
    census = assert_as_counted([generator, critic], optimizers)
    assert "Sequential (2).0.running_mean" in names_of(census, BUFFERS)
    assert "momentum_buffer of Sequential (2).1.weight" in names_of(census, OPTIMIZER_STATE)


def test_a_copy_of_the_model_counts_as_well() -> None:
    model = mlp()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer)
    census = assert_as_counted([model, average], [optimizer])
    assert len(names_of(census, PARAMETERS)) == 8


def test_gradients_count_while_they_are_there() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer)
    per_parameter = found(census_of([model], [optimizer]))["parameters"]
    assert found(census_of([model], [optimizer]))["gradients"] == per_parameter
    optimizer.zero_grad(set_to_none=False)
    assert found(census_of([model], [optimizer]))["gradients"] == per_parameter
    alone = Census(FakeDevice().storage)
    assert alone.count_gradients(model.modules(), [optimizer]) == per_parameter
    optimizer.zero_grad(set_to_none=True)
    assert found(census_of([model], [optimizer]))["gradients"] == 0
    assert Census(FakeDevice().storage).count_gradients(model.modules(), [optimizer]) == 0


def test_parameters_in_one_flat_buffer_count_once() -> None:
    model = mlp()
    flat = torch.cat([each.detach().flatten() for each in model.parameters()])
    offset = 0
    for each in model.parameters():
        each.data = flat[offset : offset + each.numel()].view_as(each)
        offset += each.numel()
    census = census_of([model], [])
    assert found(census)["parameters"] == -(-flat.nbytes // BLOCK_BYTES) * BLOCK_BYTES
    assert len(census.owned) == 1


def test_master_weights_are_state_of_the_optimizer() -> None:
    model = mlp().bfloat16()
    masters = [nn.Parameter(each.detach().float()) for each in model.parameters()]
    optimizer = torch.optim.Adam(masters)
    for master in masters:
        master.grad = torch.ones_like(master)
    optimizer.step()
    census = census_of([model], [optimizer])
    parameters = found(census)["parameters"]
    # The master weights in float32, and two moments of the same size; and the step counts.
    steps = len(masters) * BLOCK_BYTES
    assert found(census)["optimizer_state"] == pytest.approx(6 * parameters + steps, rel=0.05)
    assert found(census)["gradients"] == pytest.approx(2 * parameters, rel=0.05)
    assert "exp_avg of master weights 0" in names_of(census, OPTIMIZER_STATE)


def test_a_flat_partition_of_master_weights_is_state_too() -> None:
    model = mlp().bfloat16()
    flat = nn.Parameter(torch.cat([each.detach().float().flatten() for each in model.parameters()]))
    optimizer = torch.optim.SGD([flat], lr=0.1)
    census = census_of([model], [optimizer])
    assert found(census)["optimizer_state"] == -(-flat.nbytes // BLOCK_BYTES) * BLOCK_BYTES


def test_a_parameter_that_no_module_has_is_one_all_the_same() -> None:
    image = torch.randn(1, 3, 64, 64, requires_grad=True)
    network = nn.Conv2d(3, 8, 3).requires_grad_(False)
    optimizer = torch.optim.Adam([image])
    network(image).mean().backward()
    optimizer.step()
    census = census_of([network], [optimizer])
    assert "parameter 0" in names_of(census, PARAMETERS)
    assert "gradient of parameter 0" in names_of(census, GRADIENTS)
    assert "exp_avg of parameter 0" in names_of(census, OPTIMIZER_STATE)


def test_state_that_is_nested_counts() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inner = torch.zeros(1024)
    optimizer.state[model[0].weight] = {"factors": {"left": [inner, torch.zeros(256)]}, "step": 3}
    optimizer.state["shared"] = torch.zeros(128)
    assert found(census_of([model], [optimizer]))["optimizer_state"] == 4096 + 1024 + 512


def test_lbfgs_keeps_its_history_in_lists() -> None:
    model = nn.Linear(64, 64)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    batch = torch.randn(8, 64)

    def loss() -> Any:
        optimizer.zero_grad()
        value = model(batch).square().mean()
        value.backward()
        return value

    optimizer.step(loss)
    assert optimizer.state[model.weight]["old_dirs"]
    state = found(census_of([model], [optimizer]))["optimizer_state"]
    assert state > 4 * sum(each.nbytes for each in model.parameters())


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_parameters_without_memory_count_nothing() -> None:
    lazy = nn.LazyLinear(3)
    meta = nn.Linear(4, 4, device="meta")
    freed = nn.Linear(64, 64, bias=False)
    freed.weight.untyped_storage().resize_(0)
    size = found(census_of([lazy, freed], []))
    assert size == {"parameters": 0, "gradients": 0, "optimizer_state": 0, "buffers": 0}
    census = Census(lambda tensor: None)
    census.count([meta], [])
    assert found(census)["parameters"] == 0


def test_a_partition_beside_an_empty_parameter_is_the_parameter() -> None:
    model = nn.Linear(64, 64, bias=False)
    model.weight.ds_tensor = torch.zeros(1024)
    model.weight.untyped_storage().resize_(0)
    assert found(census_of([model], []))["parameters"] == 4096


def test_gradients_that_frameworks_keep_beside_grad_count() -> None:
    model = nn.Linear(64, 64, bias=False)
    model.weight.main_grad = torch.zeros(64, 64)
    assert found(census_of([model], []))["gradients"] == model.weight.nbytes


def test_nothing_is_warned_of_and_nothing_runs() -> None:
    model = mlp()
    # As FSDP leaves them during the forward: parameters inside the graph.
    model[0]._parameters["weight"] = model[2].weight * 2
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("error")
        census = census_of([model], [torch.optim.SGD(model[2].parameters(), lr=0.1)])
    assert found(census)["parameters"] > 0


def test_without_names_only_bytes_are_kept() -> None:
    model = mlp()
    census = census_of([model], [], names=False)
    assert census.owned == []
    assert found(census) == found(census_of([model], []))
    assert census.tensors == 4


def test_a_census_and_what_it_looked_at_go_without_a_garbage_collection() -> None:
    module = nn.Module()
    module.register_buffer("last", torch.ones(8))
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        census = census_of([module], [])
        gone = weakref.ref(census)
        buffer = weakref.ref(module.last)
        module.last = None
        assert buffer() is None
        del census
        assert gone() is None
    finally:
        if was_enabled:
            gc.enable()
