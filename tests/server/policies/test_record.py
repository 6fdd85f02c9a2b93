"""Policies and firings as the API shows them."""

from __future__ import annotations

from tests.support.made_policies import firing, policy_record


def test_a_policy_with_what_became_of_it() -> None:
    record = policy_record()
    shown = record.as_dict([{"run": "r1"}])
    assert shown["last_fired_ns"] is None
    record.last_fired_ns.update({"r1": 5, "r2": 9})
    record.failures, record.off_reason = 2, "it broke"
    shown = record.as_dict([{"run": "r1"}])
    assert (shown["last_fired_ns"], shown["failures_in_a_row"]) == (9, 2)
    assert (shown["off_reason"], shown["watching"]) == ("it broke", [{"run": "r1"}])
    assert (shown["name"], shown["mode"], shown["is_on"]) == ("tidy up", "dry_run", True)
    assert shown["says"].startswith("When reserved_bytes.all.current > 6.0 GiB")


def test_a_firing() -> None:
    shown = firing(4).as_dict()
    assert (shown["run"], shown["command_id"], shown["state"]) == ("r1", "c4", "waiting")
    assert shown["time_ns"] == 4
