"""Captures of CUDA graphs are seen, those of the compiler are not the job's."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.batching.graph_watch import GRAPHS_MODULE, GraphWatch


class Graph:
    """What ``torch.cuda.CUDAGraph`` is."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails

    def capture_begin(self, pool: object = None) -> None:
        if self.fails:
            raise RuntimeError("no graph")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[GraphWatch]:
    module = types.ModuleType(GRAPHS_MODULE)
    begin = {"capture_begin": Graph.capture_begin}
    module.__dict__["CUDAGraph"] = type("CUDAGraph", (Graph,), begin)
    monkeypatch.setitem(sys.modules, GRAPHS_MODULE, module)
    watch = GraphWatch()
    watch.install()
    yield watch
    watch.remove()


def graph_of(**options: bool) -> Any:
    return sys.modules[GRAPHS_MODULE].__dict__["CUDAGraph"](**options)


def test_there_is_one_as_long_as_the_job_has_it(watch: GraphWatch) -> None:
    assert not watch.has_graphs()
    graph = graph_of()
    graph.capture_begin()
    assert watch.has_graphs()
    del graph
    gc.collect()
    assert not watch.has_graphs()


def test_a_capture_that_fails_is_none(watch: GraphWatch) -> None:
    with pytest.raises(RuntimeError, match="no graph"):
        graph_of(fails=True).capture_begin()
    assert not watch.has_graphs()


def test_the_compilers_are_captured_anew_for_each_size(watch: GraphWatch) -> None:
    graph = graph_of()
    code = compile("graph.capture_begin()", "/x/torch/_inductor/cudagraph_trees.py", "exec")
    exec(code, {"graph": graph})
    assert not watch.has_graphs()


def test_afterwards_pytorch_is_as_it_was(watch: GraphWatch) -> None:
    watch.remove()
    assert graph_of().capture_begin.__func__ is Graph.capture_begin
