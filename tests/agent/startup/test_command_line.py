from __future__ import annotations

import pytest

from vramscope.startup.command_line import CommandLine, read_command_line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("train.py --lr 3", CommandLine("script", "train.py")),
        ("-u -X dev -W error train.py -m x", CommandLine("script", "train.py")),
        ("-m pkg.train -c x", CommandLine("module", "pkg.train")),
        ("-um pkg", CommandLine("module", "pkg")),
        ("-mpkg", CommandLine("module", "pkg")),
        ("-Bc print(1)", CommandLine("command", "print(1)")),
        ("-Wmodule train.py", CommandLine("script", "train.py")),
        ("--check-hash-based-pycs always train.py", CommandLine("script", "train.py")),
        ("", CommandLine("input", "")),
        ("-", CommandLine("input", "")),
        ("-i", CommandLine("input", "")),
        ("-m", CommandLine("module", "")),
    ],
)
def test_the_program_is_told_from_the_interpreters_options(
    words: str, expected: CommandLine
) -> None:
    assert read_command_line(["python", *words.split()]) == expected


@pytest.mark.parametrize(
    "words",
    [
        "/env/bin/torchrun --nproc-per-node 2 train.py",
        "-m torch.distributed.run train.py",
        "-m torch.distributed.launch train.py",
        "/site/torch/distributed/run.py train.py",
        "/env/bin/accelerate launch train.py",
        "-m accelerate.commands.launch train.py",
        "/env/bin/deepspeed train.py",
        "-u -m deepspeed.launcher.launch --world_info=x train.py",
    ],
)
def test_launchers_are_known(words: str) -> None:
    assert read_command_line(["python", *words.split()]).is_launcher


@pytest.mark.parametrize("words", ["train.py", "run.py", "launch.py", "-m pkg.run", "-c torchrun"])
def test_programs_of_similar_names_are_no_launchers(words: str) -> None:
    line = read_command_line(["python", *words.split()])
    assert (line.is_launcher, line.is_tool, line.is_worker) == (False, False, False)


@pytest.mark.parametrize(
    "words",
    [
        "-m pip install torch",
        "/env/bin/pytest tests",
        "/env/bin/vramscope run train.py",
        "-m vramscope run train.py",
        "/site/torch/_inductor/compile_worker/__main__.py --workers=2",
        "-m torch.utils.collect_env",
    ],
)
def test_tools_are_known(words: str) -> None:
    assert read_command_line(["python", *words.split()]).is_tool


@pytest.mark.parametrize(
    "arguments",
    [
        [
            "-c",
            "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)",
            "--multiprocessing-fork",
        ],
        ["-c", "from multiprocessing.resource_tracker import main;main(5)"],
        ["-c", "from multiprocessing.forkserver import main; main(1, 2, [])"],
        ["-u", "/site/ray/_private/workers/default_worker.py", "--node-ip-address=1"],
    ],
)
def test_processes_that_work_for_another_are_known(arguments: list[str]) -> None:
    assert read_command_line(["python", *arguments]).is_worker
