"""Answers about moments as plain data: everything JSON has, nothing else."""

from __future__ import annotations

import json

import msgspec

from tests.support.made_moments import entry, memory, recorded, two_steps
from vramscope_analysis.moments import growth_between, moment_of, stack_tree, timeline_of
from vramscope_server.moments.payload import growth_payload, moment_payload, timeline_payload


def test_a_timeline_has_columns_of_one_length_and_its_marks() -> None:
    made = recorded("oom__default")
    body = timeline_payload(made, timeline_of(made, "stack", points=200), "stack")
    length = len(body["moments"])
    assert {len(body[key]) for key in ("x", "total", "reserved")} == {length}
    assert {len(layer) for layer in body["bytes"]} == {length}
    assert len(body["groups"]) == len(body["bytes"])
    assert len(body["steps"]) == 31
    assert body["ooms"][0]["moment"] in range(made.entries)
    assert {scope["name"] for scope in body["scopes"]} == {
        "Optimizer.step#AdamW.step",
        "Optimizer.zero_grad#AdamW.zero_grad",
    }
    assert msgspec.json.decode(msgspec.json.encode(body)) == json.loads(json.dumps(body))


def test_without_times_everything_is_placed_by_entry() -> None:
    made = memory([entry("alloc", 0, 512), entry("oom", 0, 512)], told_steps=[(4, 0)])
    body = timeline_payload(made, timeline_of(made, "size"), "size")
    assert (body["unit"], body["ooms"][0]["x"], body["steps"][0]["x"]) == ("entry", 1, 1)
    assert body["scopes"] == []


def test_a_moment_has_its_tree_as_columns() -> None:
    made = two_steps()
    moment = moment_of(made, made.peak_moment)
    body = moment_payload(made, moment, stack_tree(made, moment.moment), folded=True)
    tree = body["tree"]
    assert len({len(column) for column in tree.values()}) == 1
    assert (tree["parent"][0], tree["bytes"][0]) == (-1, body["live_bytes"])
    assert body["largest"][0]["address"].startswith("0x")
    assert [held["category"] for held in body["by_category"]] == [
        *("gradients", "optimizer", "activations", "other"),
    ]
    assert (body["has_history"], body["has_stacks"]) == (True, True)
    json.dumps(body)


def test_growth_is_signed_by_its_parts() -> None:
    made = two_steps()
    body = growth_payload(growth_between(made, 0, made, made.last_moment))
    assert body["after_bytes"] - body["before_bytes"] == sum(
        row["after_bytes"] - row["before_bytes"] for row in body["rows"]
    )
    json.dumps(body)
