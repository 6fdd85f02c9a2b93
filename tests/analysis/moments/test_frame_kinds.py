"""Whose frame it is."""

from __future__ import annotations

import pytest

from vramscope_analysis.moments.frame_kinds import FrameKind, kind_of, place_of
from vramscope_analysis.snapshot import Frame

SITE = "/opt/venv/lib/python3.12/site-packages/"


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/home/ada/train.py", "main", FrameKind.USER),
        ("train.py", "<module>", FrameKind.USER),
        ("/tmp/ipykernel_12/345.py", "<module>", FrameKind.USER),
        ("<ipython-input-3-abc>", "<module>", FrameKind.USER),
        ("C:\\jobs\\train.py", "main", FrameKind.USER),
        (SITE + "transformers/trainer.py", "train", FrameKind.LIBRARY),
        (SITE + "torch/nn/functional.py", "cross_entropy", FrameKind.TORCH),
        ("site-packages/torch/nn/modules/linear.py", "forward", FrameKind.TORCH),
        ("/home/ada/src/pytorch/torch/nn/modules/linear.py", "forward", FrameKind.TORCH),
        (SITE + "torch/nn/modules/module.py", "_call_impl", FrameKind.WRAPPER),
        (SITE + "torch/nn/modules/container.py", "forward", FrameKind.WRAPPER),
        (SITE + "torch/nn/modules/module.py", "convert", FrameKind.TORCH),
        (SITE + "torch/optim/optimizer.py", "wrapper", FrameKind.WRAPPER),
        (SITE + "accelerate/utils.py", "wrapper", FrameKind.WRAPPER),
        ("/usr/lib/python3.12/contextlib.py", "inner", FrameKind.WRAPPER),
        ("<frozen runpy>", "_run_code", FrameKind.WRAPPER),
        ("/src/agent/vramscope/cli/run.py", "run", FrameKind.WRAPPER),
        (SITE + "vramscope/demo/train.py", "main", FrameKind.LIBRARY),
        ("/src/agent/vramscope/demo/train.py", "main", FrameKind.USER),
        ("??", "c10::cuda::alloc", FrameKind.NATIVE),
        ("Module.cpp", "THPModule", FrameKind.NATIVE),
    ],
)
def test_kinds(path: str, name: str, kind: FrameKind) -> None:
    assert kind_of(Frame(path, 1, name)) == kind


def test_a_place_is_short() -> None:
    assert place_of(Frame("/home/ada/train.py", 20, "f")) == "train.py:20"
    assert place_of(Frame("C:\\jobs\\train.py", 3, "f")) == "train.py:3"
