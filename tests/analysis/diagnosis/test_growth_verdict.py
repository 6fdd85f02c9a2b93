"""A report says which line keeps what grows, who holds it, and of which kind it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.step_floors import MIB, group_of, held_by, report_of
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict, verdict_of
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, GrowthReport, Holder

LIST = held_by("attribute", "T.results", "['acc']", "list of 40")


def verdict(*groups: GrowthGroup) -> GrowthVerdict:
    found = verdict_of(report_of(*groups))
    assert found is not None
    return found


def test_the_users_line_is_the_culprit_and_not_that_of_a_library() -> None:
    found = verdict(group_of(LIST))
    assert (found.kind, found.holder, found.place) == ("leak", "attribute", "train.py:56")
    assert found.held_by == ("T.results", "['acc']", "list of 40")
    assert found.culprits[0].bytes == 12 * MIB
    assert found.culprits[0].bytes_per_step == MIB
    assert found.share == 1.0


def test_the_line_that_stores_comes_before_the_line_that_allocates() -> None:
    stored = Frame("/job/metric.py", 7, "update")
    found = verdict(group_of(held_by("attribute", "Metric.preds", stored_at=stored)))
    assert [(culprit.line, culprit.function) for culprit in found.culprits] == [
        (7, "update"),
        (56, "train_step"),
    ]


def test_the_frame_of_a_holder_counts_where_it_is_its_definition() -> None:
    frame = Frame("/job/hooks.py", 3, "<lambda>")
    hook = Holder("hook", ("hook of layer4",), frame, 3)
    assert verdict(group_of(hook)).place == "hooks.py:3"
    # Of a variable it is the line that happened to run.
    assert verdict(group_of(Holder("local", ("kept",), frame, 3))).place == "train.py:56"


@pytest.mark.parametrize(
    ("holder", "kind"),
    [
        (held_by("garbage", "Node.me"), "cycle_growth"),
        (held_by("exception", "sys.last_traceback", "frame f", "x"), "retained_exception"),
        (held_by("ipc"), "retention"),
        (held_by("attribute", "Agent.replay", "deque(maxlen=10000) of 412"), "bounded"),
        (held_by("lru_cache", "PosEnc.grid", "lru_cache(maxsize=128) of 8"), "leak"),
        (held_by("autograd_graph", "total"), "leak"),
        (held_by("cpp"), "leak"),
    ],
)
def test_the_holder_says_of_which_kind_it_is(holder: Holder, kind: str) -> None:
    assert verdict(group_of(holder)).kind == kind


def test_what_mostly_waits_for_the_collector_is_garbage_whoever_else_is_named() -> None:
    found = verdict_of(
        report_of(group_of(LIST, garbage_bytes=10 * MIB), garbage={"cycle": ["Node", ".me"]})
    )
    assert found is not None
    assert (found.kind, found.cycle) == ("cycle_growth", ("Node", ".me"))


def test_the_kind_that_grows_fastest_wins() -> None:
    small = group_of(held_by("garbage"), line=9, pace=MIB)
    found = verdict(small, group_of(LIST, pace=8 * MIB))
    assert (found.kind, found.place, round(found.share, 2)) == ("leak", "train.py:56", 0.89)


def test_a_name_counts_more_than_none() -> None:
    nobody = held_by("cpp", "no object in Python", tensors=9)
    found = verdict(group_of(nobody, line=9), group_of(LIST, pace=MIB))
    assert (found.holder, found.held_by[0]) == ("autograd_graph", "T.results")
    assert [culprit.line for culprit in found.culprits] == [56, 9]
    assert verdict(group_of(nobody)).holder == "cpp"


def test_what_hangs_on_a_named_tensor_in_cpp_is_its_graph() -> None:
    hook = held_by("attribute", "Cam.g", tensors=1)
    found = verdict(group_of(held_by("cpp", tensors=2), hook), group_of(held_by("cpp"), line=39))
    assert (found.holder, found.held_by) == ("autograd_graph", ("Cam.g",))


def test_a_holder_of_as_much_whose_line_is_known_is_the_better_name() -> None:
    stored = Frame("/job/helper.py", 22, "prepare")
    session = held_by("attribute", "Session.opts", "list of 4", stored_at=stored)
    held = GrowthGroup(bytes=40 * MIB, count=9, holders=(session,))
    found = verdict_of(report_of(group_of(held_by("attribute", "Adam.param_groups")), held=[held]))
    assert found is not None
    assert (found.place, found.held_by) == ("helper.py:22", ("Session.opts", "list of 4"))
    small = replace(held, bytes=MIB)
    own = verdict_of(report_of(group_of(held_by("attribute", "Adam.param_groups")), held=[small]))
    assert own is not None
    assert own.held_by == ("Adam.param_groups",)


def test_several_holders_agree_by_the_most_tensors() -> None:
    few = held_by("local", "x", tensors=1)
    assert verdict(group_of(few, LIST)).held_by[0] == "T.results"


@pytest.mark.parametrize(
    ("chain", "is_buffer"),
    [
        (("Agent.replay_buffer", "list of 40"), True),
        (("ReplayMemory.data", "list of 40"), True),
        (("feature_cache", "dict of 40"), True),
        (("PosEnc._buffers", "dict of 1"), False),
        (("Trainer.history", "list of 40"), False),
        (("model.cached_bufferless", "list"), False),
    ],
)
def test_what_is_called_a_buffer_may_be_meant_to_fill_up(
    chain: tuple[str, ...], is_buffer: bool
) -> None:
    assert verdict(group_of(held_by("attribute", *chain))).is_buffer_by_name is is_buffer


def test_an_lru_cache_is_called_one_and_is_no_buffer() -> None:
    found = verdict(group_of(held_by("lru_cache", "Net.grid_cache", "[0]", "Net.table")))
    assert found.held_by[0] == "lru_cache of Net.grid_cache"
    assert not found.is_buffer_by_name


def test_one_tensor_that_gets_longer_is_told_from_more_and_more_of_them() -> None:
    assert verdict(group_of(LIST, adds=False)).is_one_tensor
    assert not verdict(group_of(LIST)).is_one_tensor


def test_a_report_without_a_line_or_a_holder_is_not_made_up() -> None:
    found = verdict(replace(group_of(), stack=(), tensors=()))
    assert (found.holder, found.place, found.held_by) == ("unknown", "", ())
    assert verdict_of(GrowthReport()) is None
