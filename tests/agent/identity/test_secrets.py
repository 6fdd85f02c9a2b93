"""What every rank of a launch knows, and what a process tree knows alone."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import pytest

from vramscope.identity import secrets
from vramscope.identity.identity import identify
from vramscope.identity.secrets import run_secret, seat_secret


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_kept", {})


def test_all_ranks_of_a_launch_know_the_same_and_another_launch_another() -> None:
    first, second = (
        identify("train", "job 17", environ={"RANK": str(rank), "WORLD_SIZE": "2"})
        for rank in (0, 1)
    )
    other = identify("train", "job 18", environ={})
    assert first.run_id == second.run_id
    known = run_secret(first.run_name, first.key)
    assert known == run_secret(second.run_name, second.key)
    assert known != run_secret(other.run_name, other.key)


def test_the_runs_id_is_no_part_of_its_secret() -> None:
    identity = identify("train", "job 17", environ={})
    assert identity.run_id not in run_secret(identity.run_name, identity.key)


def test_a_name_that_is_no_text_has_a_secret_too() -> None:
    assert len(run_secret("a\udcff", "key")) == 64


def test_a_process_keeps_its_secret_and_another_one_has_another() -> None:
    code = "from vramscope.identity.secrets import seat_secret; print(seat_secret())"
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert seat_secret() == seat_secret() != other
    assert len(other) == 32


def test_what_was_inherited_is_kept() -> None:
    own = seat_secret()
    assert seat_secret("of the parent") == seat_secret() == "of the parent" != own


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_its_parents() -> None:
    own = seat_secret()
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        writer.send(seat_secret())
        os._exit(0)
    os.waitpid(child, 0)
    assert reader.recv() == own
    reader.close()
    writer.close()
