"""Live bytes as a tree of calls."""

from __future__ import annotations

from tests.support.made_moments import KIB, MIB, entry, memory, recorded, two_steps
from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.moment import moment_of
from vramscope_analysis.moments.stack_tree import Node, stack_tree


def paths(nodes: list[Node]) -> dict[str, int]:
    """Bytes by the way from the root."""
    words: list[str] = []
    for node in nodes:
        above = f"{words[node.parent]}/" if node.parent >= 0 else ""
        words.append(f"{above}{node.name}")
    return {word: node.bytes // MIB for word, node in zip(words, nodes, strict=True)}


def test_callers_stand_above_what_they_call() -> None:
    made = two_steps()
    tree = stack_tree(made, made.peak_moment)
    assert paths(tree) == {
        "live bytes": 9,
        "live bytes/<module>": 7,
        "live bytes/gradients, no Python stack": 2,
        "live bytes/<module>/train_step": 7,
        "live bytes/<module>/train_step/forward": 4,
        "live bytes/<module>/train_step/step": 1,
        "live bytes/<module>/train_step/forward/forward": 4,
        "live bytes/<module>/train_step/step/_init_group": 1,
    }
    by_name = {node.name: node for node in tree}
    assert (by_name["train_step"].place, by_name["train_step"].category) == ("train.py:30", None)
    assert by_name["forward"].category == Category.ACTIVATIONS


def test_wrappers_are_folded_unless_asked_for() -> None:
    made = two_steps()
    unfolded = stack_tree(made, made.peak_moment, fold=False)
    assert "_call_impl" in {node.name for node in unfolded}
    assert "_call_impl" not in {node.name for node in stack_tree(made, made.peak_moment)}


def test_every_caller_holds_what_it_calls() -> None:
    made = recorded("fixed__default")
    tree = stack_tree(made, made.peak_moment)
    below = [0] * len(tree)
    for index, node in enumerate(tree[1:], 1):
        assert node.parent < index, "callers come first"
        below[node.parent] += node.bytes
    for node, held in zip(tree, below, strict=True):
        assert held <= node.bytes
    assert tree[0].bytes == moment_of(made, made.peak_moment).live_bytes
    assert tree[0].blocks == moment_of(made, made.peak_moment).blocks


def test_what_is_small_is_put_together() -> None:
    entries = [entry("alloc", 0, 64 * MIB, stack=[("/a/big.py", 1, "big"), ("/a/m.py", 1, "m")])]
    entries += [
        entry("alloc", (100 + i) * MIB, KIB, stack=[("/a/s.py", i, f"s{i}"), ("/a/m.py", 1, "m")])
        for i in range(30)
    ]
    tree = stack_tree(memory(entries), 30)
    (small,) = [node for node in tree if node.small]
    assert (small.name, small.bytes, small.blocks, small.small) == ("30 small", 30 * KIB, 30, 30)


def test_never_more_nodes_than_asked_for() -> None:
    entries = [
        entry("alloc", i * MIB, MIB, stack=[("/a/s.py", i, f"s{i}"), ("/a/m.py", i % 7, "m")])
        for i in range(300)
    ]
    made = memory(entries)
    tree = stack_tree(made, 299, most=50)
    assert len(tree) <= 50
    assert sum(node.bytes for node in tree if node.parent == 0) == tree[0].bytes


def test_a_moment_with_nothing_live() -> None:
    assert [node.bytes for node in stack_tree(two_steps(), -1)] == [0]
