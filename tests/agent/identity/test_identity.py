from __future__ import annotations

import os
import re

import pytest

from vramscope.identity import Identity, identify, launch_from

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
    assert rank(0, MASTER_PORT="29501").run_id != one
    assert identify("named", script="train.py", environ=TORCHRUN).run_id != one


def test_torchrun_without_an_id_is_told_apart_by_its_process_where_there_is_one() -> None:
    alone = {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none", "GROUP_WORLD_SIZE": "1"}
    launch = launch_from(alone)
    assert launch is not None
    assert f":{os.getppid()}." in launch
    two_nodes = launch_from({**alone, "GROUP_WORLD_SIZE": "2"})
    assert two_nodes is not None
    assert str(os.getppid()) not in two_nodes.split(":")[-1]


def test_a_given_launch_id_wins_and_makes_runs_comparable_across_processes() -> None:
    ids = {
        identify("run", "job-7", "a.py", environ).run_id
        for environ in ({}, TORCHRUN, {"RANK": "3"})
    }
    assert len(ids) == 1


def test_without_a_launcher_each_process_is_a_run_of_its_own() -> None:
    one, two = (identify(script="train.py", environ={}) for _ in range(2))
    assert one.run_id != two.run_id
    assert (one.rank, one.world_size, one.local_rank) == (0, 1, 0)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {
                "SLURM_JOB_ID": "9",
                "SLURM_STEP_ID": "0",
                "SLURM_STEP_NUM_TASKS": "8",
                "SLURM_PROCID": "5",
                "SLURM_LOCALID": "1",
            },
            (5, 8, 1, "slurm:9:0"),
        ),
        (
            {
                "PMIX_NAMESPACE": "prterun-1",
                "OMPI_COMM_WORLD_RANK": "2",
                "OMPI_COMM_WORLD_SIZE": "4",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            },
            (2, 4, 0, "pmix:prterun-1"),
        ),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
            (1, 2, 0, "env:a:1"),
        ),
        # A shell inside an allocation: what is started there by hand is not one run.
        (
            {"SLURM_JOB_ID": "9", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"},
            (0, 1, 0, None),
        ),
        ({"RANK": "one", "WORLD_SIZE": "-3"}, (0, 1, 0, None)),
    ],
)
def test_launchers(environ: dict[str, str], expected: tuple[int, int, int, str | None]) -> None:
    identity = identify(script="x.py", environ=environ)
    found = (identity.rank, identity.world_size, identity.local_rank, launch_from(environ))
    assert found == expected


def test_of_the_script_only_its_file_name_is_told() -> None:
    identity = identify(script="/home/me/secret-project/train.py", environ={})
    assert (identity.script, identity.run_name) == ("train.py", "train")
    assert identify(script="", environ={}).run_name == "python"
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
