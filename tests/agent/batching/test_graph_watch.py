"""Captures of CUDA graphs are seen, those of the compiler are not the job's."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.batching.graph_watch import GRAPHS_MODULE, GraphWatch


class Captured:
    """A graph."""


class Capture:
    """What ``torch.cuda.graph`` is."""

    def __init__(self, graph: Captured) -> None:
        self.cuda_graph = graph

    def __enter__(self) -> None:
        if not isinstance(self.cuda_graph, Captured):
            raise RuntimeError("no graph")

    def __exit__(self, *error: object) -> None:
        pass


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[GraphWatch]:
    module = types.ModuleType(GRAPHS_MODULE)
    module.__dict__["graph"] = type("graph", (Capture,), {"__enter__": Capture.__enter__})
    monkeypatch.setitem(sys.modules, GRAPHS_MODULE, module)
    watch = GraphWatch()
    watch.install()
    yield watch
    watch.remove()


def capture(graph: Any) -> None:
    with sys.modules[GRAPHS_MODULE].__dict__["graph"](graph):
        pass


def test_there_is_one_as_long_as_the_job_has_it(watch: GraphWatch) -> None:
    assert not watch.has_graphs()
    graph = Captured()
    capture(graph)
    assert watch.has_graphs()
    del graph
    gc.collect()
    assert not watch.has_graphs()


def test_a_capture_that_fails_is_none(watch: GraphWatch) -> None:
    with pytest.raises(RuntimeError, match="no graph"):
        capture(None)
    assert not watch.has_graphs()


def test_the_compilers_are_captured_anew_for_each_size(watch: GraphWatch) -> None:
    graph = Captured()
    code = compile("capture(graph)", "/x/torch/_inductor/cudagraph_trees.py", "exec")
    exec(code, {"capture": capture, "graph": graph})
    assert not watch.has_graphs()


def test_afterwards_pytorch_is_as_it_was(watch: GraphWatch) -> None:
    watch.remove()
    context: Any = sys.modules[GRAPHS_MODULE].__dict__["graph"]
    assert context.__enter__ is Capture.__enter__
