from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from vramscope.identity import launch_key as module
from vramscope.identity.launch_key import group_key, launch_key, process_key
from vramscope.identity.launchers import placement_from
from vramscope.identity.process_group import ProcessGroup
from vramscope.identity.process_life import Ancestor, life_of

RANK = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
ELASTIC = {**RANK, "TORCHELASTIC_RUN_ID": "none", "GROUP_WORLD_SIZE": "1"}


def key(variables: dict[str, str]) -> str | None:
    placement = placement_from(variables)
    assert placement is not None
    return launch_key(variables, placement)


@pytest.fixture
def parents(monkeypatch: pytest.MonkeyPatch) -> list[Ancestor]:
    """The processes above this one, as the test fills them in."""
    found: list[Ancestor] = []
    monkeypatch.setattr(module, "ancestors", lambda: iter(found))
    monkeypatch.setattr(module, "life_of", lambda pid: f"life-{pid}")
    return found


def ancestor(pid: int, arguments: Sequence[str] = (), *, rank: bool = False) -> Ancestor:
    environ = [f"{name}={value}" for name, value in ELASTIC.items()] if rank else ["PATH=/bin"]
    return Ancestor(pid, tuple(arguments), frozenset(environ))


def test_on_one_machine_torchruns_process_tells_launches_apart(parents: list[Ancestor]) -> None:
    # A wrapper script of the rank, then torchrun.
    parents[:] = [ancestor(20, ["bash", "wrap.sh"], rank=True), ancestor(10, ["torchrun"])]
    first = key(ELASTIC)
    assert first is not None
    assert first.endswith("life-10")
    parents[:] = [ancestor(10, ["torchrun"])]
    assert key({**ELASTIC, "MASTER_PORT": "41000"}) == first
    parents[:] = [ancestor(11, ["torchrun"])]
    assert key(ELASTIC) != first


@pytest.mark.parametrize(
    ("options", "is_told_apart"),
    [
        ([], True),
        (["--nnodes", "1"], True),
        (["--nnodes=1:1"], True),
        (["--nnodes", "1:4"], False),
        (["--nnodes=2"], False),
        (["--num_machines", "2"], False),
    ],
)
def test_an_id_that_is_given_again_is_another_launch_where_one_machine_is_all(
    parents: list[Ancestor], options: list[str], is_told_apart: bool
) -> None:
    named = {**ELASTIC, "TORCHELASTIC_RUN_ID": "100"}
    parents[:] = [ancestor(10, ["torchrun", *options, "train.py"])]
    first = key(named)
    parents[:] = [ancestor(11, ["torchrun", *options, "train.py"])]
    assert (key(named) != first) is is_told_apart


def test_on_several_machines_only_what_all_of_them_see_is_in_the_key(
    parents: list[Ancestor],
) -> None:
    two = {**ELASTIC, "GROUP_WORLD_SIZE": "2"}
    parents[:] = [ancestor(10)]
    first = key(two)
    parents[:] = [ancestor(11)]
    assert key(two) == first
    assert key({**two, "MASTER_ADDR": "node7"}) != first
    assert key({**two, "SLURM_JOB_ID": "8"}) != first


def test_ranks_that_meet_on_this_machine_are_told_apart_by_who_started_them(
    parents: list[Ancestor],
) -> None:
    here = {**RANK, "MASTER_ADDR": "localhost"}
    parents[:] = [ancestor(10, ["python", "launch.py"])]
    first = key(here)
    parents[:] = [ancestor(11, ["python", "launch.py"])]
    assert key(here) != first
    # Two terminals, one rank in each.
    parents[:] = [ancestor(12, ["-bash"])]
    typed = key(here)
    parents[:] = [ancestor(13, ["/bin/zsh", "-i"])]
    assert key(here) == typed
    parents[:] = [ancestor(14, ["bash", "launch.sh"])]
    assert key(here) != typed


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {
                "SLURM_PROCID": "1",
                "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_JOB_ID": "9",
                "SLURM_STEP_ID": "0",
            },
            "slurm:9:0",
        ),
        ({"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2", "FLUX_JOB_ID": "f1"}, "flux:f1"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, None),
        ({"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"}, None),
    ],
)
def test_a_launcher_has_a_key_or_none(
    parents: list[Ancestor], variables: dict[str, str], expected: str | None
) -> None:
    assert key(variables) == expected


def test_open_mpi_names_its_job_and_other_mpi_is_known_by_its_process(
    parents: list[Ancestor],
) -> None:
    parents[:] = [ancestor(10, ["mpiexec"])]
    ompi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    assert "prterun-7" in str(key({**ompi, "PMIX_NAMESPACE": "prterun-7"}))
    assert ":242:" in str(key({**ompi, "OMPI_MCA_ess_base_jobid": "242"}))
    pmi = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
    assert key(pmi) == "mpi:life-10"
    assert "pbs 12" in str(key({**pmi, "MPI_LOCALNRANKS": "1", "PBS_JOBID": "12"}))


def test_ranks_that_only_pytorch_knows_share_who_started_them_or_where_they_meet() -> None:
    at_home = ProcessGroup(1, 1000, "127.0.0.1:29500")
    far = ProcessGroup(1, 1000, "node0:29500")
    parent = process_key(os.getppid())
    assert group_key({"WORLD_SIZE": "1000"}, at_home) == parent
    # So many are not children of one process here.
    assert str(group_key({"WORLD_SIZE": "1000"}, far)).startswith("store:node0:29500:")
    assert group_key({"WORLD_SIZE": "1000"}, ProcessGroup(1, 1000)) == parent
    assert group_key({}, far) == group_key({"WORLD_SIZE": "1000"}, far)
    assert group_key({}, ProcessGroup(1, 2)) is None


def test_children_of_a_process_name_it_as_it_names_itself() -> None:
    code = (
        "import multiprocessing\n"
        "from vramscope.identity.launch_key import group_key, process_key\n"
        "from vramscope.identity.process_group import ProcessGroup\n"
        "def show(): print(group_key({}, ProcessGroup(0, 2, 'localhost:1')))\n"
        "if __name__ == '__main__':\n"
        "    print(process_key(), flush=True)\n"
        "    child = multiprocessing.get_context('fork').Process(target=show)\n"
        "    child.start(); child.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own, childs = done.stdout.splitlines()
    assert own == childs
    assert own != process_key()


def test_the_real_parent_is_found() -> None:
    code = (
        "import os\n"
        "from vramscope.identity.launch_key import launch_key\n"
        "from vramscope.identity.launchers import placement_from\n"
        "print(launch_key(os.environ, placement_from(os.environ)))\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env={**os.environ, **ELASTIC}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().endswith(life_of(os.getpid()))
