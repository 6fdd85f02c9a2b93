"""Who trains and who only helps, for the process trees that launchers and libraries make."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.made_processes import made_process
from vramscope.processes.attached import THREAD_MARK
from vramscope.processes.python_program import PythonProgram
from vramscope.processes.roles import Observed, Part, assign_roles, is_launcher

SPAWNED = ("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()")
SPAWNED_ON = (*SPAWNED, "--multiprocessing-fork")
FORK_SERVER = ("python", "-B", "-c", "from multiprocessing.forkserver import main; main(3)")
TRACKER = ("python", "-c", "from multiprocessing.resource_tracker import main;main(5)")
COMPILER = ("python", "/x/torch/_inductor/compile_worker/__main__.py", "--workers=8")
TRAIN = ("python", "train.py")


def observed(
    pid: int,
    parent: int = 1,
    argv: Sequence[str] = TRAIN,
    *,
    layout: str = "",
    threads: tuple[str, ...] = (),
    gpu_bytes: int = 0,
    torch: str | None = "2.9.1",
    name: str = "python",
) -> Observed:
    """One process; a layout of its own unless one is given."""
    return Observed(
        process=made_process(pid, ppid=parent, argv=tuple(argv), name=name),
        program=PythonProgram((3, 11), torch, None, False, layout or f"layout{pid}"),
        gpu_bytes=gpu_bytes,
        holds_gpu=gpu_bytes > 0,
        threads=frozenset(threads),
    )


def parts_of(*all_observed: Observed) -> dict[int, Part]:
    """The part of each."""
    return assign_roles({each.process.pid: each for each in all_observed})


def roles_of(*all_observed: Observed) -> dict[int, str]:
    """The role of each."""
    return {pid: part.role for pid, part in parts_of(*all_observed).items()}


def test_torch_or_memory_of_a_gpu_or_being_watched_make_a_training_process() -> None:
    assert roles_of(
        observed(10),
        observed(11, torch=""),
        observed(12, torch=None, gpu_bytes=1),
        observed(13, torch=None, threads=(THREAD_MARK,)),
        observed(14, torch=None),
    ) == {10: "training", 11: "training", 12: "training", 13: "training", 14: "other"}


@pytest.mark.parametrize("argv", [SPAWNED, SPAWNED_ON, FORK_SERVER, TRACKER, COMPILER])
def test_helpers_of_the_library_work_for_their_parent(argv: Sequence[str]) -> None:
    parts = parts_of(observed(10), observed(11, 10, argv))
    assert parts[10].role == "training"
    assert parts[11] == Part("worker", 10, is_child=True)


def test_a_forked_child_works_for_its_parent() -> None:
    parts = parts_of(observed(10, layout="a"), observed(11, 10, layout="a"))
    assert parts[11] == Part("worker", 10, is_child=True)


def test_workers_behind_a_fork_server_work_for_the_process_above_it() -> None:
    parts = parts_of(
        observed(10),
        observed(11, 10, FORK_SERVER, layout="b", torch=None),
        observed(12, 11, FORK_SERVER, layout="b"),
    )
    assert parts[12].parent == 10
    assert parts[11].parent == 10


def test_the_same_command_started_anew_is_a_rank_of_its_own() -> None:
    """Lightning starts its other ranks so."""
    assert roles_of(observed(10), observed(11, 10)) == {10: "training", 11: "training"}


def test_a_program_that_a_job_starts_is_judged_by_itself() -> None:
    assert roles_of(observed(10), observed(11, 10, ("python", "evaluate.py")))[11] == "training"


@pytest.mark.parametrize("thread", ["pt_gloo_runloop", "pt_nccl_watchdg", "pt_autograd_0"])
def test_spawned_ranks_train_and_their_parent_only_started_them(thread: str) -> None:
    ranks = [observed(pid, 10, SPAWNED_ON, threads=(thread,)) for pid in (12, 13)]
    parts = parts_of(observed(10), observed(11, 10, TRACKER, torch=None), *ranks)
    assert {pid: part.role for pid, part in parts.items()} == {
        10: "launcher",
        11: "worker",
        12: "training",
        13: "training",
    }


def test_memory_of_a_gpu_shows_a_rank() -> None:
    parts = parts_of(observed(10), observed(11, 10, SPAWNED_ON, gpu_bytes=1 << 30))
    assert (parts[10].role, parts[11].role) == ("launcher", "training")


def test_a_parent_that_trains_too_stays_listed() -> None:
    parts = parts_of(
        observed(10, gpu_bytes=1 << 30), observed(11, 10, SPAWNED_ON, gpu_bytes=1 << 30)
    )
    assert (parts[10].role, parts[11].role) == ("training", "training")


def test_a_worker_of_a_rank_works_for_the_rank() -> None:
    parts = parts_of(
        observed(10),
        observed(11, 10, SPAWNED_ON, threads=("pt_nccl_watchdg",)),
        observed(12, 11, SPAWNED_ON),
    )
    assert parts[12] == Part("worker", 11, is_child=True)


def test_a_data_worker_is_one_even_with_memory_of_a_gpu() -> None:
    worker = observed(11, 10, layout="a", name="pt_data_worker", gpu_bytes=1)
    assert parts_of(observed(10, layout="a"), worker)[11].role == "worker"


def test_a_worker_whose_parent_has_ended_works_for_nobody() -> None:
    assert parts_of(observed(11, 1, SPAWNED_ON))[11] == Part("worker", 0, is_child=True)


@pytest.mark.parametrize(
    "argv",
    [
        ("python", "/venv/bin/torchrun", "--nproc-per-node", "8", "train.py"),
        ("python", "-m", "torch.distributed.run", "train.py"),
        ("python", "-m", "torch.distributed.launch", "train.py"),
        ("python", "/venv/bin/accelerate", "launch", "train.py"),
        ("python", "-m", "accelerate.commands.launch", "train.py"),
        ("python", "/venv/bin/deepspeed", "train.py"),
        ("python", "-u", "-m", "deepspeed.launcher.launch", "train.py"),
    ],
)
def test_launchers_are_not_training(argv: Sequence[str]) -> None:
    assert roles_of(observed(10, argv=argv), observed(11, 10)) == {10: "launcher", 11: "training"}


def test_a_launcher_that_named_itself_is_known_by_its_name() -> None:
    assert is_launcher(made_process(name="pt_elastic", argv=("python", "own_launcher.py")))


@pytest.mark.parametrize(
    "argv",
    [
        TRAIN,
        ("python", "/venv/bin/accelerate", "test"),
        ("python", "torchrun.py"),
        ("python", "/venv/bin/vramscope", "run", "train.py"),
        ("torchrun", "x"),
        (),
    ],
)
def test_others_are_no_launchers(argv: tuple[str, ...]) -> None:
    assert not is_launcher(made_process(argv=argv))
