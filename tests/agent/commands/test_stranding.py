"""Stranded memory is shared out among what lives beside it, to the byte."""

from __future__ import annotations

import random
from typing import Any

import pytest

from vramscope.commands.cache_plan import plan_empty_cache
from vramscope.commands.stranding import ELSE, MAX_HOLDERS, Holder, holders
from vramscope.tensors.category import GRADIENTS, NONE, OPTIMIZER_STATE, PARAMETERS

MIB = 1 << 20


def segment(blocks: str, *, address: int = 0, size_mib: int = 2, **more: Any) -> dict[str, Any]:
    """A segment of equal blocks: ``-`` is free, ``P`` pending, a letter one that ``where`` made."""
    return {
        "address": address,
        "total_size": len(blocks) * size_mib * MIB,
        "segment_pool_id": (0, 0),
        "blocks": [block(letter, size_mib) for letter in blocks],
        **more,
    }


def block(letter: str, size_mib: int) -> dict[str, Any]:
    states = {"-": "inactive", "P": "active_pending_free"}
    frames = [
        {
            "filename": "/lib/site-packages/torch/nn/functional.py",
            "line": 9,
            "name": "f",
        },
        {"filename": f"/home/me/{letter}.py", "line": 1, "name": "make"},
        {"filename": "/home/me/main.py", "line": 2, "name": "main"},
    ]
    state = states.get(letter, "active_allocated")
    return {"size": size_mib * MIB, "state": state, "frames": frames}


def nobody(address: int) -> tuple[int, str]:
    raise AssertionError("asked for where there is a stack")


def found(*segments: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [
        (each.what.removeprefix("/home/me/").partition(".")[0], each.bytes // MIB, each.segments)
        for each in holders(segments, nobody)
    ]


def test_the_innermost_line_of_the_job_is_named() -> None:
    assert holders([segment("a-")], nobody) == [Holder("/home/me/a.py:1 make", 2 * MIB, 1)]


def test_all_who_live_beside_it_share_it_and_those_who_do_not_have_none() -> None:
    assert found(segment("a-"), segment("a--"), segment("b"), segment("-"), segment("P")) == [
        ("a", 6, 2)
    ]
    assert found(segment("ab-P")) == [("a", 2, 1), ("b", 2, 1)]
    assert found(segment("a-"), segment("b-b-")) == [("b", 4, 1), ("a", 2, 1)]


def test_private_pools_are_another_matter() -> None:
    assert found(segment("a-", segment_pool_id=(0, 1))) == []


def test_in_an_expandable_segment_only_the_same_page_counts() -> None:
    pages = {"is_expandable": True, "page_bytes": 8 * MIB}
    assert found(segment("a---" + "----" + "bb-b" + "cccc", **pages)) == [("a", 6, 1), ("b", 2, 1)]
    # A block that reaches into the page is in it.
    wide = segment("", **pages)
    wide["blocks"] = [block("a", 10), block("-", 6)]
    wide["total_size"] = 16 * MIB
    assert found(wide) == [("a", 6, 1)]


def test_without_stacks_it_is_what_the_tensors_are() -> None:
    owners = {
        0: (PARAMETERS, "encoder.layers.0.attention.weight"),
        10 * MIB: (OPTIMIZER_STATE, "exp_avg of encoder.layers.0.attention.weight"),
        20 * MIB: (GRADIENTS, "gradient of head"),
        30 * MIB: (NONE, ""),
    }
    segments = [segment("a-", address=address) for address in owners]
    for each in segments:
        for one in each["blocks"]:
            del one["frames"]
    assert {each.what for each in holders(segments, owners.__getitem__)} == {
        "parameters of encoder.layers.0",
        "optimizer state of encoder.layers.0",
        "gradients",
        ELSE,
    }


def test_no_more_than_eight_are_named_and_nothing_is_lost() -> None:
    letters = "abcdefghijkl"
    rows = holders([segment(each + "-") for each in letters], nobody)
    assert len(rows) == MAX_HOLDERS
    assert rows[-1] == Holder("others", 2 * (len(letters) - MAX_HOLDERS + 1) * MIB, 1)


@pytest.mark.parametrize("is_expandable", [False, True])
def test_the_shares_add_up_to_what_is_stranded_whatever_the_blocks(is_expandable: bool) -> None:
    chance = random.Random(7)
    for _ in range(300):
        sizes = [512 * chance.randint(1, 9000) for _ in range(chance.randint(1, 40))]
        blocks = [{**block(chance.choice("abcde---P"), 0), "size": size} for size in sizes]
        total = sum(sizes)
        page_bytes = 2 * MIB
        if is_expandable:
            blocks.append({**block("-", 0), "size": -total % page_bytes})
            total += -total % page_bytes
        one = {
            **segment(""),
            "total_size": total,
            "blocks": [each for each in blocks if each["size"]],
            "is_expandable": is_expandable,
            "page_bytes": page_bytes,
        }
        plan = plan_empty_cache([one])
        assert sum(each.bytes for each in holders([one], nobody)) == plan.stranded_bytes
