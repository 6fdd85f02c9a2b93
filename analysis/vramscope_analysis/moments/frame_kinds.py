"""What each frame of a stack is: the user's own, of a library, of PyTorch, or only a wrapper."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from vramscope_analysis.snapshot import Frame, Frames


class FrameKind(IntEnum):
    """Whose frame it is, from the most to the least telling."""

    USER = 0
    """Outside of everything below: what somebody wrote for this job."""
    LIBRARY = 1
    """Installed, but not PyTorch: a trainer, a model collection."""
    TORCH = 2
    """PyTorch's own that says what was done: ``cross_entropy``, ``_init_group``."""
    WRAPPER = 3
    """Only calls on: hooks, decorators, containers, the launcher. Folded unless asked for."""
    NATIVE = 4
    """No Python: C++ frames of a recording with ``stacks="all"``."""


_INSTALLED: Final = re.compile(r"(?:^|/)(?:site|dist)-packages/")
_TORCH: Final = re.compile(r"(?:^|/)(?:torch|functorch|torchgen)/")
_STANDARD: Final = re.compile(r"/python3(?:\.\d+)?/|^<frozen |(?:^|/)(?:runpy|contextlib)\.py$")
_OURS: Final = re.compile(r"(?:^|/)vramscope/(?!demo/)")
_NOTEBOOK: Final = re.compile(r"^<(?:ipython-input|string|stdin)|ipykernel")

_WRAPPER_FILES: Final = (
    "torch/nn/modules/module.py",
    "torch/nn/modules/container.py",
    "torch/utils/_contextlib.py",
    "torch/utils/_device.py",
    "torch/_tensor.py",
    "torch/_compile.py",
    "torch/_dynamo/eval_frame.py",
    "torch/autograd/graph.py",
    "torch/autograd/function.py",
    "torch/distributed/launcher/api.py",
    "torch/distributed/run.py",
)
_WRAPPER_NAMES: Final = {
    "_call_impl",
    "_wrapped_call_impl",
    "_use_grad",
    "_use_grad_for_differentiable",
    "_inner",
    "_fn",
    "decorate_autocast",
    "decorate_context",
    "inner",
    "wrapped",
    "wrapper",
}
_TELLING: Final = {"to", "convert", "cuda", "half", "float", "bfloat16"}
"""Of a wrapper's file, but what was done: a module moved or converted."""


def kind_of(frame: Frame) -> FrameKind:
    """Whose frame this is, by its file and, for wrappers, its function."""
    path = frame.filename.replace("\\", "/")
    if not path.endswith((".py", ".pyx")) and not _NOTEBOOK.search(path):
        return FrameKind.WRAPPER if path.startswith("<frozen") else FrameKind.NATIVE
    installed = _INSTALLED.search(path)
    if _OURS.search(path):
        return FrameKind.WRAPPER
    inside = path[installed.end() :] if installed else path
    if _TORCH.match(inside) or (not installed and _is_torch_source(path)):
        is_wrapper = path.endswith(_WRAPPER_FILES) and frame.name not in _TELLING
        return FrameKind.WRAPPER if is_wrapper or _is_wrapper(frame.name) else FrameKind.TORCH
    if installed:
        return FrameKind.WRAPPER if _is_wrapper(frame.name) else FrameKind.LIBRARY
    return FrameKind.WRAPPER if _STANDARD.search(path) else FrameKind.USER


def _is_wrapper(name: str) -> bool:
    return name in _WRAPPER_NAMES


def _is_torch_source(path: str) -> bool:
    """PyTorch installed from its sources, outside of any site-packages."""
    return "/torch/nn/modules/" in path or "/torch/optim/" in path or "/torch/utils/" in path


def kinds_of(frames: Frames) -> list[FrameKind]:
    """The kind of every frame of a snapshot."""
    return [kind_of(frames[index]) for index in range(len(frames))]


def place_of(frame: Frame) -> str:
    """``train.py:20``: the file without its folders, and the line."""
    name = frame.filename.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{frame.line}"
