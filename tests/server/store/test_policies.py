from __future__ import annotations

import logging
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.support.made_policies import firing, policy_record
from tests.support.server_commands import make_command
from tests.support.streams import open_store
from vramscope_server.store import command_log, policies, tables


def test_policies_come_back_with_when_they_acted_last_in_each_run(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    record = policy_record(hold={"steps": 4})
    record.failures, record.fired, record.off_reason, record.is_on = 2, 7, "it broke", False
    store.write_now(lambda c: policies.put(c, record))
    for number, run in ((3, "r1"), (9, "r2"), (5, "r1")):
        store.write_now(
            lambda c, n=number, r=run: policies.add_firing(c, firing(n, run_id=r))  # type: ignore[misc]
        )
    (found,) = store.read_now(policies.list_policies)
    record.last_fired_ns = {"r1": 5, "r2": 9}
    assert found == record
    store.write_now(lambda c: policies.set_counts(c, "p1", 8, 0))
    (found,) = store.read_now(policies.list_policies)
    assert (found.fired, found.failures, found.off_reason) == (8, 0, "it broke")
    store.write_now(lambda c: policies.delete(c, "p1"))
    assert store.read_now(policies.list_policies) == []
    assert store.read_now(lambda c: policies.list_firings(c, "p1", 10)) == []
    store.close()


def test_one_that_cannot_be_read_does_not_keep_the_others_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(tmp_path)
    for policy_id in ("p1", "p2"):
        record = policy_record(policy_id)
        store.write_now(lambda c, r=record: policies.put(c, r))  # type: ignore[misc]
    newer = update(tables.policies).where(tables.policies.c.id == "p1")
    store.write_now(lambda c: c.execute(newer.values(definition='{"when": {"moon": "full"}}')))
    with caplog.at_level(logging.ERROR):
        assert [found.id for found in store.read_now(policies.list_policies)] == ["p2"]
    assert "the policy p1 cannot be read and does nothing" in caplog.text
    store.close()


def test_the_newest_firings_of_each_policy_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "KEPT_FIRINGS", 3)
    store = open_store(tmp_path)
    for number in range(5):
        for policy_id in ("p1", "p2"):
            each = firing(number, policy_id=policy_id)
            store.write_now(lambda c, f=each: policies.add_firing(c, f))  # type: ignore[misc]
    found = store.read_now(lambda c: policies.list_firings(c, "p1", 10))
    assert [each.time_ns for each in found] == [4, 3, 2]
    assert len(store.read_now(lambda c: policies.list_firings(c, "p2", 2))) == 2
    store.close()


def test_what_was_under_way_when_the_server_ended(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in (1, 2, 3):
        each = firing(number)
        store.write_now(lambda c, f=each: policies.add_firing(c, f))  # type: ignore[misc]
    store.write_now(lambda c: command_log.insert_command(c, "r1", make_command(id="c2").as_row()))
    store.write_now(lambda c: policies.set_outcome(c, 3, "done", "it did"))
    found = store.read_now(policies.list_waiting)
    assert [(each.firing.command_id, each.command_state) for each in found] == [
        ("c2", "queued"),
        ("c1", None),
    ]
    (newest, *_) = store.read_now(lambda c: policies.list_firings(c, "p1", 10))
    assert (newest.state, newest.result) == ("done", "it did")
    store.close()
