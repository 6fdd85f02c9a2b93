from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vramscope.identity import process_life
from vramscope.identity.process_life import (
    ancestors,
    child_count,
    life_of,
    own_life,
    short_name,
    start_environment,
    started_ns,
)


def test_a_life_is_the_same_for_all_who_ask_and_no_other_process_has_it() -> None:
    code = "import os; from vramscope.identity.process_life import *; print(life_of(os.getppid()))"
    asked = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert {done.stdout.strip() for done in asked} == {own_life()}
    assert own_life() == life_of(os.getpid()) != life_of(os.getppid())
    assert len(short_name(own_life())) == 16


def test_without_proc_a_life_is_made_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_life, "_text", lambda path: "")
    assert own_life() == own_life() != life_of(os.getpid())
    assert started_ns(os.getpid()) == 0


def test_the_start_of_a_process_is_known() -> None:
    before_ns = time.time_ns()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        # The kernel counts in hundredths of a second.
        assert before_ns - 20_000_000 <= started_ns(process.pid) <= time.time_ns() + 20_000_000
        assert child_count(os.getpid()) >= 1
    finally:
        process.communicate(b"\n")
    assert started_ns(process.pid) == 0
    assert child_count(process.pid) == 0


def test_the_processes_above_this_one_are_seen_as_they_started() -> None:
    first, *_ = ancestors()
    assert first.pid == os.getppid()
    assert first.arguments
    assert any(item.startswith("PATH=") for item in first.environ)


def test_the_environment_of_the_start_is_not_what_became_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SET_LATER", "1")
    found = start_environment()
    assert found is not None
    assert "SET_LATER" not in found
    # A title for ps, written over it.
    monkeypatch.setattr(process_life, "_items", lambda path: ["ray::train"])
    assert start_environment() is None
