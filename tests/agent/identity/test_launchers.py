from __future__ import annotations

import subprocess
import sys

import pytest

from vramscope.identity.launchers import (
    Placement,
    given_variables,
    is_numbered_later,
    placement_from,
)

TORCH = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {
                **TORCH,
                "GROUP_RANK": "1",
                "TORCHELASTIC_RUN_ID": "x",
                "TORCHELASTIC_RESTART_COUNT": "1",
                "TORCHELASTIC_MAX_RESTARTS": "3",
            },
            Placement("torchrun", 5, 8, 1, 4, 1, 1, 3),
        ),
        (
            {**TORCH, "TORCHELASTIC_RUN_ID": "x", "ACCELERATE_MIXED_PRECISION": "no"},
            Placement("accelerate", 5, 8, 1, 4),
        ),
        (
            {
                "RANK": "5",
                "WORLD_SIZE": "8",
                "LOCAL_RANK": "1",
                "LOCAL_SIZE": "4",
                "CROSS_RANK": "1",
                "CROSS_SIZE": "2",
            },
            Placement("deepspeed", 5, 8, 1, 4, 1),
        ),
        ({**TORCH, "NODE_RANK": "1", "RAY_JOB_ID": "01"}, Placement("ray", 5, 8, 1, 4, 1)),
        (TORCH, Placement("env", 5, 8, 1, 4)),
        ({"RANK": "3"}, Placement("env", 3, 4, 0)),
        (
            {
                "SLURM_PROCID": "5",
                "SLURM_STEP_NUM_TASKS": "8",
                "SLURM_LOCALID": "1",
                "SLURM_NODEID": "1",
                "SLURM_RESTART_COUNT": "2",
            },
            Placement("srun", 5, 8, 1, None, 1, 2),
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "2",
                "OMPI_COMM_WORLD_SIZE": "4",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
                # srun started mpirun's helper, not this process.
                "SLURM_PROCID": "1",
                "SLURM_STEP_NUM_TASKS": "2",
            },
            Placement("mpirun", 2, 4, 0, 2),
        ),
        (
            {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
            Placement("mpirun", 1, 2, 1, 2),
        ),
        (
            {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"},
            Placement("mpirun", 1, 2, 0),
        ),
        (
            {"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2", "FLUX_TASK_LOCAL_ID": "1"},
            Placement("flux", 1, 2, 1),
        ),
    ],
)
def test_each_launcher_is_known_by_its_variables(
    variables: dict[str, str], expected: Placement
) -> None:
    assert placement_from(variables) == expected


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RANK": "one", "WORLD_SIZE": "-3"},
        {"RANK": "4", "WORLD_SIZE": "4"},
        # A shell inside an allocation: what is started there by hand is not one job.
        {"SLURM_JOB_ID": "9", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
        {"WORLD_SIZE": "4"},
    ],
)
def test_what_makes_no_sense_is_no_number(variables: dict[str, str]) -> None:
    assert placement_from(variables) is None


def test_a_process_may_know_how_many_there_are_before_it_knows_which_it_is() -> None:
    assert is_numbered_later({"WORLD_SIZE": "2", "LOCAL_RANK": "1"})
    assert not is_numbered_later({"WORLD_SIZE": "2", "RANK": "1"})
    assert not is_numbered_later({"WORLD_SIZE": "1"})
    assert not is_numbered_later({"WORLD_SIZE": "4", "SLURM_PROCID": "1"} | SLURM_TWO)


SLURM_TWO = {"SLURM_STEP_NUM_TASKS": "2"}


def test_what_a_script_sets_itself_is_not_taken_for_its_launchers_word() -> None:
    code = (
        "import os\n"
        "from vramscope.identity.launchers import given_variables\n"
        "os.environ['RANK'] = '9'\n"
        "os.environ['WORLD_SIZE'] = '9'\n"
        "os.environ['OTHER'] = 'is kept'\n"
        "found = given_variables()\n"
        "print(found['RANK'], found.get('WORLD_SIZE'), found['OTHER'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={key: value for key, value in given_variables().items() if key != "WORLD_SIZE"}
        | {"RANK": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1 None is kept\n"
