from __future__ import annotations

import inspect
import types
from typing import Any

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def real(size: int, *, unit: str = "B") -> str:
    """The original's words."""
    return f"real {size} {unit}"


@pytest.fixture
def module() -> Any:
    module: Any = types.ModuleType("some_torch")
    module.measure = real
    return module


def make(ours: bool = True) -> tuple[Any, list[bool]]:
    from vramscope.emulation.torch_names import TorchNames

    switch = [ours]
    return TorchNames(lambda: switch[0]), switch


def test_ours_answers_until_the_original_is_put_back(module: Any) -> None:
    names, _ = make()
    names.replace(module, "measure", lambda size, unit="B": f"ours {size} {unit}")
    assert module.measure(3, unit="KiB") == "ours 3 KiB"

    names.restore()
    assert module.measure is real


def test_our_function_looks_like_the_original(module: Any) -> None:
    names, _ = make()
    names.replace(module, "measure", lambda size: "ours")

    assert module.measure.__doc__ == real.__doc__
    assert inspect.signature(module.measure) == inspect.signature(real)


def test_a_name_that_the_job_imported_is_the_original_again_after_the_end(module: Any) -> None:
    names, switch = make()
    names.replace(module, "measure", lambda size: "ours")
    imported = module.measure

    switch[0] = False

    assert imported(3, unit="MiB") == "real 3 MiB"


def test_a_name_that_the_job_replaced_is_left_alone(module: Any) -> None:
    names, switch = make()
    names.replace(module, "measure", lambda size: "ours")
    ours = module.measure
    module.measure = lambda size: f"the job's and {ours(size)}"

    names.restore()
    switch[0] = False

    assert module.measure(3) == "the job's and real 3 B"


def test_names_that_this_torch_lacks_stay_away_unless_added(module: Any) -> None:
    names, switch = make()
    names.replace(module, "other", lambda: "ours")
    names.add(module, "observe", lambda: "ours")
    assert not hasattr(module, "other")
    assert module.observe() == "ours"
    observe = module.observe

    names.restore()
    switch[0] = False

    assert not hasattr(module, "observe")
    assert observe() is None


def test_errors_of_ours_for_the_job_reach_it(module: Any) -> None:
    def refuse(size: int) -> None:
        raise ValueError(size)

    names, _ = make()
    names.replace(module, "measure", refuse)

    with pytest.raises(ValueError, match="3"):
        module.measure(3)
