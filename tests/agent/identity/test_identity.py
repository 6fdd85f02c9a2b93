from __future__ import annotations

import os
import re

import pytest

from vramscope.config import load_config
from vramscope.identity.identity import Identity, identify
from vramscope.identity.inheritance import Inheritance
from vramscope.identity.process_group import ProcessGroup

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "a-rendezvous",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29500",
    "WORLD_SIZE": "4",
    "GROUP_WORLD_SIZE": "2",
}


def rank(number: int, **extra: str) -> Identity:
    environ = {**TORCHRUN, "RANK": str(number), "LOCAL_RANK": str(number % 2), **extra}
    return identify(script="/home/me/train.py", environ=environ)


def test_all_ranks_of_a_launch_are_one_run_with_streams_of_their_own() -> None:
    ranks = [rank(number) for number in range(4)]
    assert len({identity.run_id for identity in ranks}) == 1
    assert len({identity.stream for identity in ranks}) == 4
    assert [identity.rank for identity in ranks] == [0, 1, 2, 3]
    assert [identity.local_rank for identity in ranks] == [0, 1, 0, 1]
    assert {identity.world_size for identity in ranks} == {4}
    assert re.fullmatch(r"[0-9a-f]{12}", ranks[0].run_id)
    assert re.fullmatch(r"[0-9a-f]{32}", ranks[0].stream)


def test_another_launch_or_another_name_is_another_run() -> None:
    one = rank(0).run_id
    assert rank(0, TORCHELASTIC_RUN_ID="another").run_id != one
    assert rank(0, SLURM_JOB_ID="7").run_id != one
    assert identify("named", script="train.py", environ={**TORCHRUN, "RANK": "0"}).run_id != one


def test_ranks_that_start_again_are_in_the_same_run_at_whatever_port() -> None:
    again = rank(
        0,
        MASTER_PORT="41234",
        TORCHELASTIC_RESTART_COUNT="2",
        TORCHELASTIC_MAX_RESTARTS="3",
        SLURM_JOB_ID="",
    )
    assert again.run_id == rank(0).run_id
    assert (again.restart_count, again.max_restarts) == (2, 3)


def test_a_given_launch_id_wins_and_makes_runs_comparable_across_processes() -> None:
    ids = {
        identify("run", "job-7", "a.py", environ).run_id
        for environ in ({}, TORCHRUN, {"RANK": "3"})
    }
    assert len(ids) == 1


def test_a_process_that_is_attached_to_again_goes_on_in_its_run() -> None:
    one, two = (identify(script="train.py", environ={}) for _ in range(2))
    assert (one.run_id, one.life, one.process_started_ns // 10**9) == (
        two.run_id,
        two.life,
        two.process_started_ns // 10**9,
    )
    assert one.stream != two.stream
    assert (one.rank, one.world_size, one.local_rank, one.launcher) == (0, 1, 0, "")


def test_a_process_group_numbers_what_no_launcher_has_numbered() -> None:
    group = ProcessGroup(3, 8, "node0:29400")
    identity = identify(script="train.py", environ={"SLURM_JOB_ID": "9"}, group=group)
    assert (identity.rank, identity.world_size, identity.local_rank) == (3, 8, 3)
    assert (identity.launcher, identity.job) == ("distributed", "slurm 9")
    other = identify(
        script="train.py", environ={"SLURM_JOB_ID": "9"}, group=ProcessGroup(0, 8, "node0:29400")
    )
    assert other.run_id == identity.run_id
    assert identity.run_id != identify(script="train.py", environ={}).run_id


def test_a_launcher_is_believed_before_a_process_group_that_may_be_one_of_several() -> None:
    environ = {**TORCHRUN, "RANK": "3"}
    identity = identify(script="train.py", environ=environ, group=ProcessGroup(1, 2, "x:1"))
    assert (identity.rank, identity.world_size) == (3, 4)
    alone = {**TORCHRUN, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    spawned = identify(script="train.py", environ=alone, group=ProcessGroup(1, 2, "x:1"))
    assert (spawned.rank, spawned.world_size, spawned.local_rank) == (1, 2, 1)


def test_a_child_takes_the_name_of_the_run_only_with_the_run() -> None:
    # Ranks that one process starts, with their numbers still to come, as Lightning's are.
    environ = {"WORLD_SIZE": "2"}
    parent = Inheritance(load_config({}), "the package", "the key of its launcher")
    near, far = ProcessGroup(1, 2, "127.0.0.1:29400"), ProcessGroup(1, 1000, "node0:29400")
    child = identify(script="a.py", environ=environ, group=near, parent=parent)
    assert (child.run_name, child.key) == ("the package", "the key of its launcher")
    stranger = identify(script="a.py", environ=environ, group=far, parent=parent)
    assert (stranger.run_name, stranger.key.partition(":")[0]) == ("a", "store")
    assert f".{os.getppid()}." in identify(script="a.py", environ=environ, group=near).key


def test_of_the_script_only_its_file_name_is_told() -> None:
    identity = identify(script="/home/me/secret-project/train.py", environ={})
    assert (identity.script, identity.run_name) == ("train.py", "train")
    assert identify(script="", environ={}).run_name == "python"
    assert identify(script="pkg.train", environ={}).run_name == "pkg.train"
    assert (identity.pid, set(identity.software)) == (os.getpid(), {"vramscope", "python"})


def test_a_user_that_no_database_knows_is_named_by_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert identify(script="x.py", environ={}).user == str(os.getuid())


def test_a_script_whose_name_is_no_unicode_has_a_run() -> None:
    identity = identify(script="a\udcff.py", environ={})
    assert identity.run_name == "a\udcff"
    assert len(identity.run_id) == 12
