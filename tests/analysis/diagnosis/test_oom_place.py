"""The line is that of the user, whatever PyTorch and libraries have on top of it."""

from __future__ import annotations

import pytest

from tests.support.made_ooms import asking, made_oom
from vramscope_analysis.diagnosis.oom_place import (
    is_making_state,
    is_pinning,
    is_search_for_batch_size,
    optimizer_in,
    place_of_oom,
)

SITE = "/usr/lib/python3.11/site-packages"
MODULE = f"{SITE}/torch/nn/modules/module.py"
FUNCTIONAL = f"{SITE}/torch/nn/functional.py"
USER = ("/home/me/train.py", 30, "gpt_step")


def test_the_line_is_the_innermost_of_the_user_with_what_it_called() -> None:
    report = made_oom(
        threads=(
            {"name": "other", "frames": [{"file": "/home/me/log.py", "line": 3}]},
            asking((FUNCTIONAL, 99, "cross_entropy"), (MODULE, 1, "_call_impl"), USER),
        )
    )
    place = place_of_oom(report)
    assert place is not None
    assert (place.text, place.short) == ("train.py:30 gpt_step › cross_entropy", "train.py:30")
    assert place.file == "/home/me/train.py"


def test_a_line_outside_of_functions_stands_alone() -> None:
    place = place_of_oom(made_oom(threads=(asking(("/a/train.py", 5, "<module>")),)))
    assert place is not None
    assert place.text == "train.py:5"


def test_a_library_is_named_below_it_and_stands_alone_without_it() -> None:
    library = (f"{SITE}/transformers/trainer.py", 12, "training_step")
    below = place_of_oom(made_oom(threads=(asking(library, USER),)))
    alone = place_of_oom(made_oom(threads=(asking(library),)))
    assert below is not None
    assert below.text == "train.py:30 gpt_step › trainer.py:12 training_step"
    assert alone is not None
    assert alone.text == "trainer.py:12 training_step"


def test_a_backward_thread_has_no_lines_so_the_line_is_the_one_that_waits_for_it() -> None:
    waiting = asking((f"{SITE}/torch/autograd/graph.py", 5, "_engine_run_backward"), USER)
    report = made_oom(
        thread="Dummy-1",
        threads=({**waiting, "raised": False}, asking(name="Dummy-1")),
    )
    place = place_of_oom(report)
    assert place is not None
    assert (place.short, place.is_backward) == ("train.py:30", True)


def test_nobody_knows_without_threads() -> None:
    assert place_of_oom(made_oom()) is None
    assert place_of_oom(made_oom(thread="x", threads=({"name": "y", "frames": []},))) is None


@pytest.mark.parametrize(
    ("file", "is_search"),
    [
        (f"{SITE}/accelerate/utils/memory.py", True),
        (f"{SITE}/lightning/pytorch/tuner/batch_size_scaling.py", True),
        (f"{SITE}/accelerate/accelerator.py", False),
    ],
)
def test_a_search_for_the_batch_size_is_known_by_its_file(file: str, is_search: bool) -> None:
    assert is_search_for_batch_size(made_oom(threads=(asking(USER, (file, 1, "f")),))) is is_search


def test_an_optimizer_is_known_by_its_file() -> None:
    adam = made_oom(
        threads=(
            asking(
                (f"{SITE}/torch/optim/adam.py", 178, "_init_group"),
                (f"{SITE}/torch/optim/optimizer.py", 80, "wrapper"),
                USER,
            ),
        )
    )
    assert (optimizer_in(adam), is_making_state(adam)) == ("adam", True)
    plain = made_oom(threads=(asking(USER),))
    assert (optimizer_in(plain), is_making_state(plain)) == ("", False)


def test_pinning_is_known_by_its_function() -> None:
    moving = made_oom(threads=(asking((MODULE, 1, "convert"), (MODULE, 2, "_apply"), USER),))
    pinning = made_oom(threads=(asking((f"{SITE}/torch/_tensor.py", 1, "pin_memory"), USER),))
    assert not is_pinning(moving)
    assert is_pinning(pinning)
