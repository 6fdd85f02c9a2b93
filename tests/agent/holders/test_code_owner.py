"""Whose code a file is, by its path."""

from __future__ import annotations

import os
import sysconfig

import pytest

import vramscope
from vramscope.holders import code_owner
from vramscope.holders.code_owner import Owner, owner_of

PACKAGE = os.path.dirname(str(vramscope.__file__))


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/home/somebody/train.py", Owner.USER),
        ("train.py", Owner.USER),
        ("<ipython-input-3-abc>", Owner.USER),
        ("/opt/venv/lib/python3.11/site-packages/lightning/loop.py", Owner.LIBRARY),
        ("/usr/lib/python3/dist-packages/numpy/core.py", Owner.LIBRARY),
        ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", Owner.TORCH),
        ("/src/pytorch/torch/optim/adam.py", Owner.TORCH),
        (os.path.join(sysconfig.get_path("stdlib"), "threading.py"), Owner.TORCH),
        ("<frozen importlib._bootstrap>", Owner.TORCH),
        ("/opt/venv/lib/python3.11/site-packages/vramscope/agent.py", Owner.OWN),
        (os.path.join(PACKAGE, "agent.py"), Owner.OWN),
        (os.path.join(PACKAGE, "demo", "train.py"), Owner.USER),
    ],
)
def test_owners(path: str, owner: Owner) -> None:
    assert owner_of(path) is owner
    assert owner_of(path) is owner  # as it was kept


def test_no_more_files_are_remembered_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_owner, "_MAX_KNOWN", 3)
    monkeypatch.setattr(code_owner, "_known", {})
    for number in range(10):
        assert owner_of(f"/home/somebody/{number}.py") is Owner.USER
    assert len(code_owner._known) <= 3
