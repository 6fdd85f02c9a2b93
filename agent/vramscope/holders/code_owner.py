"""Whose code a source file is: the user's, a library's, PyTorch's, or ours."""

from __future__ import annotations

import os
import re
import sysconfig
from enum import IntEnum
from typing import Final

_OWN: Final = re.compile(r"(?:^|/)vramscope(?:_protocol|_analysis|_server)?/(?!demo/)")
_INSTALLED: Final = re.compile(r"(?:^|/)(?:site|dist)-packages/")
_TORCH: Final = re.compile(r"(?:^|/)(?:torch|functorch|torchgen)/")
_TORCH_SOURCE: Final = re.compile(r"/torch/(?:nn/modules|optim|utils|autograd|_[a-z]+)/")
_OWN_FOLDER: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEMO_FOLDER: Final = os.path.join(_OWN_FOLDER, "demo", "")
_STANDARD_FOLDERS: Final = tuple(
    os.path.join(path, "")
    for path in {sysconfig.get_path(each) for each in ("stdlib", "platstdlib")}
)
_MAX_KNOWN: Final = 16_384


class Owner(IntEnum):
    """Whose file it is, from the most to the least telling."""

    USER = 0
    """Outside of everything below: what somebody wrote for this job."""
    LIBRARY = 1
    """Installed, but not PyTorch: a trainer, a model collection."""
    TORCH = 2
    """PyTorch, and Python's own library."""
    OWN = 3
    """vramscope's, but for the job of its demo."""


_known: dict[str, Owner] = {}


def owner_of(filename: str) -> Owner:
    """Whose source file this is."""
    found = _known.get(filename)
    if found is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()  # a job that compiles code without end
        found = _known[filename] = _owner(filename)
    return found


def _owner(filename: str) -> Owner:
    path = filename.replace("\\", "/")
    if path.startswith(_OWN_FOLDER):
        return Owner.USER if path.startswith(_DEMO_FOLDER) else Owner.OWN
    installed = _INSTALLED.search(path)
    inside = path[installed.end() :] if installed else path
    if installed and _OWN.match(inside):
        return Owner.OWN
    if (installed and _TORCH.match(inside)) or _TORCH_SOURCE.search(path):
        return Owner.TORCH
    if installed:
        return Owner.LIBRARY
    if path.startswith((*_STANDARD_FOLDERS, "<frozen ")):
        return Owner.TORCH
    return Owner.OWN if _is_sister(path) else Owner.USER


def _is_sister(path: str) -> bool:
    """A file of our other packages, which lie beside this one in a checkout."""
    root = os.path.dirname(os.path.dirname(_OWN_FOLDER.rstrip(os.sep)))
    return path.startswith(os.path.join(root, "")) and bool(
        re.match(r"(?:protocol|analysis|server|agent)/vramscope", path[len(root) + 1 :])
    )
