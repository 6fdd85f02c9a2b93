from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

import pytest

from vramscope.identity.process_group_watcher import C10D_MODULE, ProcessGroupWatcher

pytestmark = pytest.mark.torch
dist: Any = pytest.importorskip("torch.distributed")


def init() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def test_a_group_that_comes_up_or_goes_is_noticed_however_it_is_set_up() -> None:
    # As a script has it that imported the function before it was attached to.
    init_process_group = dist.init_process_group
    seen: list[bool] = []
    watcher = ProcessGroupWatcher(lambda: seen.append(dist.is_initialized()))
    watcher.install()
    try:
        init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        assert seen == [True]
        dist.destroy_process_group()
        assert seen == [True, False]
    finally:
        watcher.remove()
    init()
    dist.destroy_process_group()
    assert seen == [True, False]


def test_torch_is_left_as_it_was_whoever_came_first() -> None:
    c10d = sys.modules[C10D_MODULE]
    before = c10d.__dict__["_update_default_pg"]
    one, two = (ProcessGroupWatcher(lambda: None) for _ in range(2))
    for watcher in (one, two):
        watcher.install()
    two.remove()
    one.remove()
    assert c10d.__dict__["_update_default_pg"] is before


@pytest.mark.expects_guarded_errors
def test_what_goes_wrong_on_our_side_stays_there() -> None:
    def fail() -> None:
        raise ValueError("ours")

    watcher = ProcessGroupWatcher(fail)
    watcher.install()
    try:
        init()
        assert dist.is_initialized()
        dist.destroy_process_group()
    finally:
        watcher.remove()


def test_a_torch_without_the_function_is_only_not_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, C10D_MODULE, ModuleType(C10D_MODULE))
    watcher = ProcessGroupWatcher(lambda: None)
    watcher.install()
    watcher.remove()


def test_a_forked_child_notices_a_group_of_its_own() -> None:
    read, write = os.pipe()

    def tell() -> None:
        os.write(write, str(os.getpid()).encode())

    watcher = ProcessGroupWatcher(tell)
    watcher.install()
    try:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                init()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert os.read(read, 100) == str(pid).encode()
    finally:
        watcher.remove()
        os.close(read)
        os.close(write)
