"""Holders have a name that a person knows, a title, and remedies that fit them."""

from __future__ import annotations

import pytest

from tests.support.step_floors import MIB, group_of, held_by, report_of
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict, verdict_of
from vramscope_analysis.diagnosis.holder_remedies import remedies_of
from vramscope_analysis.diagnosis.holder_words import (
    container_name,
    container_of,
    holder_name,
    is_metric,
    title_of,
)
from vramscope_analysis.evidence.growth_report import Frame, Holder


def verdict(holder: Holder) -> GrowthVerdict:
    found = verdict_of(report_of(group_of(holder)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("chain", "name"),
    [
        (("T.results", "['acc']", "list of 40"), "T.results['acc']"),
        (("Session.opts", "[3]", ".state"), "Session.opts[3].state"),
        (("kept", "list of 40"), "kept"),
        ((), ""),
    ],
)
def test_the_name_ends_where_the_container_begins(chain: tuple[str, ...], name: str) -> None:
    assert holder_name(chain) == name


@pytest.mark.parametrize(
    ("chain", "name"),
    [
        (("batches", "past", "list of 84"), "past"),
        (("batches", "state", ".past", "list of 84", "[3]"), "state.past"),
        (("kept", "list of 40", "[0]", ".value"), "kept"),
        (("Keeper.best", "list"), "Keeper.best"),
        (("total", "graph of 1786 nodes"), "total"),
        (("lru_cache of grid", "key Grid"), "lru_cache of grid"),
        ((), ""),
    ],
)
def test_a_container_in_a_generator_has_the_name_that_it_has_there(
    chain: tuple[str, ...], name: str
) -> None:
    assert container_name(chain) == name


def test_what_is_to_be_cleared_is_the_container_in_the_generator() -> None:
    found = verdict(held_by("local", "batches", "past", "list of 84"))
    first = remedies_of(found, 40 * MIB)[0]
    assert first.action == "Clear past, which batches has, once it has been used"
    assert first.fix == "past.clear()"


def test_the_container_is_named_if_there_is_one() -> None:
    assert container_of(("T.results", "['acc']", "list of 40")) == "list"
    assert container_of(("model.g",)) == ""


@pytest.mark.parametrize(
    ("holder", "title", "fix"),
    [
        (
            held_by("attribute", "T.results", "['acc']", "list of 40"),
            "Tensors kept in T.results['acc']",
            "T.results['acc'].clear()",
        ),
        (
            held_by("autograd_graph", "total"),
            "Graph history kept by total",
            "total = total.detach()",
        ),
        (held_by("hook", "layer4"), "A hook keeps tensors", "self.g = grad_output[0].detach()"),
        (
            held_by("lru_cache", "PosEnc.grid"),
            "Kept by the lru_cache of PosEnc.grid",
            "weakref.WeakKeyDictionary()",
        ),
        (held_by("ipc"), "Shared with another process", "torch.cuda.ipc_collect()"),
        (
            held_by("exception", "sys.last_traceback"),
            "An exception keeps its frames alive",
            "sys.last_traceback = sys.last_value = sys.last_exc = None; gc.collect()",
        ),
        (held_by("cpp"), "Held from C++, by no Python object", "ctx.save_for_backward(...)"),
        (
            held_by("garbage", "Node.me"),
            "Reference cycles",
            "weakref.ref(...), or weakref.WeakMethod(...) for a bound method",
        ),
    ],
)
def test_each_holder_has_its_title_and_its_remedy(holder: Holder, title: str, fix: str) -> None:
    found = verdict(holder)
    first = remedies_of(found, 40 * MIB)[0]
    assert (title_of(found), first.fix, first.predicted_bytes) == (title, fix, 40 * MIB)


def test_a_method_update_is_that_of_a_metric_and_is_to_be_reset() -> None:
    stored = Frame("/job/m.py", 7, "update")
    found = verdict(held_by("attribute", "Acc.preds", "list of 40", stored_at=stored))
    assert title_of(found) == "Metric state kept in Acc.preds"
    assert "Reset" in remedies_of(found, None)[0].action


def test_a_class_that_calls_itself_a_metric_is_one() -> None:
    assert is_metric(verdict(held_by("attribute", "BinaryMetric.preds", "list of 40")))
    assert not is_metric(verdict(held_by("attribute", "T.results", "list of 40")))
