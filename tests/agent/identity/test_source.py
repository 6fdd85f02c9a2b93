from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from vramscope.config import load_config
from vramscope.identity import source as module
from vramscope.identity.inheritance import Inheritance
from vramscope.identity.process_group import ProcessGroup
from vramscope.identity.source import IdentitySource


class FakeWatcher:
    """Stands for torch: the test says when a group comes up."""

    def __init__(self, on_change: Any) -> None:
        self.on_change = on_change
        self.calls: list[str] = []

    def install(self) -> None:
        self.calls.append("install")

    def remove(self) -> None:
        self.calls.append("remove")


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> list[ProcessGroup]:
    """Empty until the group is up."""
    groups: list[ProcessGroup] = []
    monkeypatch.setattr(module, "read_process_group", lambda: groups[-1] if groups else None)
    monkeypatch.setattr(module, "ProcessGroupWatcher", FakeWatcher)
    monkeypatch.setattr(module, "given_variables", dict)
    return groups


def watcher(source: IdentitySource) -> FakeWatcher:
    found: Any = source._watcher
    assert isinstance(found, FakeWatcher)
    return found


def test_a_group_that_comes_up_makes_another_rank_of_the_same_stream(
    group: list[ProcessGroup],
) -> None:
    source = IdentitySource(script="train.py")
    source.start()
    first = source.identity
    assert (first.rank, first.world_size, source.has_changed) == (0, 1, False)
    group.append(ProcessGroup(2, 4, "node0:1"))
    watcher(source).on_change()
    assert (source.has_changed, source.identity) == (True, first)
    second = source.renew()
    assert (second.rank, second.world_size, source.has_changed) == (2, 4, False)
    assert (second.stream, second.started_ns) == (first.stream, first.started_ns)
    assert second.run_id != first.run_id
    source.remove()
    assert watcher(source).calls == ["install", "remove"]


def test_a_process_that_is_not_likely_to_be_a_rank_is_told_at_once(
    group: list[ProcessGroup], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SPAWNED_WAIT_S", 3600.0)
    monkeypatch.setattr(module, "_NUMBERED_LATER_WAIT_S", 3600.0)
    IdentitySource(script="train.py").wait()


@pytest.mark.parametrize("ends_by", ["group", "remove"])
@pytest.mark.parametrize("why", ["spawned", "numbered later"])
def test_one_that_is_waits_for_its_number(
    group: list[ProcessGroup], monkeypatch: pytest.MonkeyPatch, why: str, ends_by: str
) -> None:
    monkeypatch.setattr(module, "_SPAWNED_WAIT_S", 3600.0)
    monkeypatch.setattr(module, "_NUMBERED_LATER_WAIT_S", 3600.0)
    if why == "spawned":
        monkeypatch.setattr(module, "parent_pid", os.getppid)
    else:
        monkeypatch.setattr(module, "given_variables", lambda: {"WORLD_SIZE": "2"})
    source = IdentitySource(script="train.py")
    waiting = threading.Thread(target=source.wait)
    waiting.start()
    assert waiting.is_alive()
    if ends_by == "group":
        group.append(ProcessGroup(1, 2))
        watcher(source).on_change()
    else:
        source.remove()
    waiting.join(30)
    assert not waiting.is_alive()


def test_it_waits_once_and_not_for_ever(
    group: list[ProcessGroup], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SPAWNED_WAIT_S", 0.01)
    monkeypatch.setattr(module, "parent_pid", os.getppid)
    source = IdentitySource(script="train.py")
    source.wait()
    monkeypatch.setattr(module, "_SPAWNED_WAIT_S", 3600.0)
    source.wait()


def test_a_forked_child_that_becomes_a_rank_is_no_news_of_this_process(
    group: list[ProcessGroup], monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[int] = []
    source = IdentitySource(script="a.py", on_rank_in_child=lambda: children.append(os.getpid()))
    monkeypatch.setattr(source, "_pid", os.getpid() + 1)
    watcher(source).on_change()  # a group went
    assert children == []
    group.append(ProcessGroup(1, 2))
    watcher(source).on_change()
    assert (children, source.has_changed) == ([os.getpid()], False)


def test_a_parent_is_one_only_in_the_same_run(group: list[ProcessGroup]) -> None:
    config = load_config({})
    key = IdentitySource(script="a.py").identity.key
    assert IdentitySource(script="a.py", parent=Inheritance(config, "a", key)).has_parent
    assert not IdentitySource(script="a.py", parent=Inheritance(config, "a", "x")).has_parent
    assert not IdentitySource(script="a.py").has_parent
