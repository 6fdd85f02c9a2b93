"""What a person reads of a policy."""

from __future__ import annotations

from tests.support.made_policies import GIB, WHEN, definition
from vramscope_server.policies.watch import Met
from vramscope_server.policies.wording import duration, says, value_text, why


def test_a_policy_in_one_sentence() -> None:
    assert says(definition(hold={"seconds": 30})) == (
        "When reserved_bytes.all.current > 6.0 GiB on any rank for 30 s, "
        "then empty_cache on all ranks, at most every 1 min (dry run)."
    )
    found = definition(
        when={"finding": "leak", "severity": "critical"},
        hold={"steps": 20},
        then={"command": "pause", "ranks": "all"},
        mode="act",
        every_s=7200,
    )
    assert says(found) == (
        "When a finding 'leak', critical or worse, is confirmed for 20 steps, "
        "then pause on all ranks, at most every 2 h."
    )
    whole = definition(
        when={"finding": None, "confirmed": False}, then={"command": "stats", "ranks": [3]}
    )
    assert says(whole).startswith("When any finding, warning or worse, holds, then stats on rank 3")
    matching = definition(then={"command": "stats", "ranks": "matching"})
    assert "then stats on the ranks where it does" in says(matching)


def test_why_it_acted() -> None:
    found = definition(hold={"seconds": 30})
    assert why(found, Met((0,), 31.2, 9, 7 * GIB)) == (
        "reserved_bytes.all.current was 7.0 GiB on rank 0, above 6.0 GiB, for 31.2 s"
    )
    below = definition(
        when=WHEN | {"series": "step.duration_us", "op": "<", "value": 5.5}, hold={"steps": 3}
    )
    assert why(below, Met((0, 1), 1, 4, 5)) == (
        "step.duration_us was 5 us on 2 ranks, below 5.5 us, for 4 steps"
    )
    found = definition(when={"finding": "leak"})
    assert why(found, Met((), 0, 0, what="Memory grows.")) == "leak: Memory grows."


def test_lengths_and_values() -> None:
    texts = [duration(each) for each in (0.5, 90, 120, 7200, 86400, 3601)]
    assert texts == ["0.5 s", "90 s", "2 min", "2 h", "1 d", "3601 s"]
    assert value_text("loss", 1.25) == "1.25"
    assert value_text("reserved_bytes.all.current", -5) == "-5 B"
