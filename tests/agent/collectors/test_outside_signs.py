from __future__ import annotations

import mmap
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from vramscope.collectors.outside_signs import (
    Signs,
    count_groups,
    library_of,
    names_of_new,
    read_signs,
)
from vramscope.identity.process_group_watcher import C10D_MODULE


def test_libraries_have_the_names_that_people_use() -> None:
    paths = [
        "/usr/lib/libcudnn_engines_precompiled.so.9",
        "/opt/torch/lib/libtorch_cuda_linalg.so",
        "/usr/lib/libcublasLt.so.13",
        "/usr/lib/libc.so.6",
        "/usr/bin/python3",
    ]
    signs = read_signs(lambda: paths)
    assert {library_of(each) for each in signs.libraries} == {"cuDNN", "cuSOLVER", "cuBLAS"}
    assert library_of("libc.so.6") == ""


def test_a_library_is_seen_once_this_process_has_mapped_it(tmp_path: Path) -> None:
    path = tmp_path / "libcudnn_of_this_test.so.9"
    path.write_bytes(bytes(4096))
    before = read_signs()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        after = read_signs()
    assert after.libraries - before.libraries == {path.name}
    assert names_of_new(before, after) == ["cuDNN"]


def test_what_came_between_two_moments_is_named_once() -> None:
    before = Signs(1, frozenset({"libcudnn_ops.so.9", "libcublas.so.13"}))
    after = Signs(2, frozenset({"libcudnn_ops.so.9", "libcudnn_cnn.so.9", "libcudnn_graph.so.9"}))
    assert names_of_new(before, after) == ["NCCL", "cuDNN"]
    assert names_of_new(after, before) == ["cuBLAS"]
    assert names_of_new(after, after) == []


def test_groups_that_use_nccl_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {
        "a": ("nccl", None),
        "b": ("gloo", None),
        "c": ("cpu:gloo,cuda:nccl", None),
        "odd": (),
    }
    module = SimpleNamespace(_world=SimpleNamespace(pg_map=groups))
    monkeypatch.setitem(sys.modules, C10D_MODULE, module)
    assert count_groups() == 2
    monkeypatch.setitem(sys.modules, C10D_MODULE, SimpleNamespace())
    assert count_groups() == 0
    monkeypatch.delitem(sys.modules, C10D_MODULE)
    assert count_groups() == 0
