"""Muted lines are stored by run name, kind and subject."""

from __future__ import annotations

from pathlib import Path

from tests.support.streams import open_store
from vramscope_server.store import finding_mutes


def test_rules_are_put_changed_and_deleted(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    line, other = ("train", "leak", "train.py:5"), ("train", "leak", "train.py:6")
    store.write_now(lambda c: finding_mutes.put(c, line, {"reason": "known"}))
    store.write_now(lambda c: finding_mutes.put(c, other, {"reason": "b"}))
    store.write_now(lambda c: finding_mutes.put(c, line, {"reason": "better"}))
    assert dict(store.read_now(finding_mutes.list_rules)) == {
        line: {"reason": "better"},
        other: {"reason": "b"},
    }
    store.write_now(lambda c: finding_mutes.delete(c, line))
    store.write_now(lambda c: finding_mutes.delete(c, line))
    assert [key for key, _ in store.read_now(finding_mutes.list_rules)] == [other]
    store.close()
