"""The batch system's job that a process belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_VARIABLES: Final = (
    ("slurm", "SLURM_JOB_ID"),
    ("pbs", "PBS_JOBID"),
    ("lsf", "LSB_JOBID"),
    ("flux", "FLUX_JOB_ID"),
    ("cobalt", "COBALT_JOBID"),
    ("ray", "RAY_JOB_ID"),
    ("sagemaker", "TRAINING_JOB_NAME"),
    ("azureml", "AZUREML_RUN_ID"),
    ("vertex", "CLOUD_ML_JOB_ID"),
)
_MAX_CHARACTERS: Final = 100


def scheduler_job(variables: Mapping[str, str]) -> str:
    """The job as a person names it, such as ``slurm 4711``; empty without a batch system."""
    for system, name in _VARIABLES:
        job = variables.get(name, "").strip()
        if job and job.isprintable():
            return f"{system} {job}"[:_MAX_CHARACTERS]
    # Grid Engine's own name is too common to be believed alone.
    if variables.get("SGE_TASK_ID") and variables.get("JOB_ID", "").isdigit():
        return f"sge {variables['JOB_ID']}"
    return ""
