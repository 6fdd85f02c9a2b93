from __future__ import annotations

import pytest

from vramscope.identity.scheduler_job import scheduler_job


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ""),
        ({"SLURM_JOB_ID": "4711"}, "slurm 4711"),
        ({"PBS_JOBID": "12.host"}, "pbs 12.host"),
        ({"LSB_JOBID": "3"}, "lsf 3"),
        ({"RAY_JOB_ID": "01000000"}, "ray 01000000"),
        ({"JOB_ID": "5"}, ""),  # anybody's
        ({"JOB_ID": "5", "SGE_TASK_ID": "undefined"}, "sge 5"),
        ({"SLURM_JOB_ID": "\x1b[2J"}, ""),
    ],
)
def test_a_batch_job_is_named_as_its_users_name_it(
    variables: dict[str, str], expected: str
) -> None:
    assert scheduler_job(variables) == expected
