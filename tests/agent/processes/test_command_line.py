"""What of a command line is shown to a person."""

from __future__ import annotations

import pytest

from vramscope.processes.command_line import (
    HIDDEN,
    MAX_CHARACTERS,
    Program,
    hide_secrets,
    is_python_name,
    name_of,
    program_of,
    shown_command,
    split_command_line,
)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["python", "train.py", "--lr", "0.1"], "python train.py"),
        (["/venv/bin/python3.12", "-u", "exp/train.py"], "python3.12 exp/train.py"),
        (["python", "-X", "dev", "-W", "error", "train.py", "x.py"], "python train.py"),
        (["python", "-um", "pkg", "x.py"], "python -m pkg"),
        (["python", "-Bumpkg"], "python -m pkg"),
        (["python", "-Xdev", "-OO", "--check-hash-based-pycs", "never", "t.py"], "python t.py"),
        (["python", "-m", "pkg.train", "--data", "d"], "python -m pkg.train"),
        (["python", "-c", "import os; TOKEN='s3cr3t'"], f"python -c {HIDDEN}"),
        (["python", "-", "x.py"], "python"),
        (["python"], "python"),
        (["-python"], "python"),
        (["python", "-m"], "python"),
        (["/usr/bin/sshd", "-D"], "sshd"),
        ([], ""),
        (["ray::TrainWorker.run(lr=1)  on host"], "ray::TrainWorker.run(lr=1) on host"),
        (
            ["python", "/venv/bin/vramscope", "run", "--token", "abc", "train.py", "--lr", "1"],
            f"python /venv/bin/vramscope run {HIDDEN} train.py",
        ),
        (
            ["python", "-m", "vramscope", "run", "-m", "pkg.train"],
            "python -m vramscope run -m pkg.train",
        ),
        (["python", "/bin/torchrun", "train.py"], "python /bin/torchrun train.py"),
        (
            ["python", "/bin/accelerate", "launch", "--num_processes", "2", "t.py"],
            f"python /bin/accelerate launch {HIDDEN} t.py",
        ),
        (["python", "/bin/accelerate", "launch", "--x"], "python /bin/accelerate launch"),
    ],
)
def test_the_command_ends_with_the_script(given: list[str], shown: str) -> None:
    assert shown_command(given) == shown


def test_nothing_in_it_acts_on_the_terminal() -> None:
    assert shown_command(["python", "a\x1b[2Jb\udc80.py"]) == "python a?[2Jb?.py"


def test_a_long_path_keeps_its_end() -> None:
    shown = shown_command(["python", "/data/" + "long/" * 60 + "train.py"])
    assert len(shown) == MAX_CHARACTERS
    assert shown.startswith("python /data/")
    assert shown.endswith("/train.py")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--token", "abc", "train.py"], ["--token", HIDDEN, "train.py"]),
        (["--hf-api-key=abc"], [f"--hf-api-key={HIDDEN}"]),
        (["WANDB_API_KEY=abc"], [f"WANDB_API_KEY={HIDDEN}"]),
        (["--password", "--lr", "1"], ["--password", "--lr", "1"]),
        (["https://ada:pw@host/x"], [f"https://{HIDDEN}@host/x"]),
        (["hf_AbCdEf0123456789GhIjKl"], [HIDDEN]),
        (["train_with_a_very_long_name"], ["train_with_a_very_long_name"]),
        (["/data/run0123456789/train_0123456789.py"], ["/data/run0123456789/train_0123456789.py"]),
    ],
)
def test_secrets_are_hidden(words: list[str], shown: list[str]) -> None:
    assert hide_secrets(words) == shown


def test_a_title_hides_its_secrets_too() -> None:
    assert shown_command(["train --token abc on gpu"]) == f"train --token {HIDDEN} on gpu"


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (["python", "-m", "pkg.run", "t.py"], Program("pkg.run", ("t.py",), is_module=True)),
        (["python", "a.py", "-m", "b"], Program("a.py", ("-m", "b"))),
        (["python", "-c", "code", "b"], Program("-c", ("b",))),
        (["bash", "x"], Program("bash", ("x",))),
        (["python", "-i"], Program("")),
        ([], Program("")),
    ],
)
def test_the_program_is_found(argv: list[str], program: Program) -> None:
    assert program_of(argv) == program


def test_words_are_separated_by_nul() -> None:
    assert split_command_line(b"a\0b c\0\0") == ("a", "b c", "")
    assert split_command_line(b"") == ()
    assert split_command_line(b"\xff\0") == ("\udcff",)


def test_interpreters_are_known_by_their_names() -> None:
    python = ["python", "/usr/bin/python3", "python3.13t", "pypy3.10"]
    assert all(map(is_python_name, python))
    other = ["pythonista", "ipython", "python-config", "bpython"]
    assert not any(map(is_python_name, other))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (["python", "exp/train.py", "--lr", "0.1"], "train.py"),
        (["python", "-m", "pkg.train"], "pkg.train"),
        (["python", "-m", "vramscope", "run", "exp/train.py", "x.py"], "train.py"),
        (["/venv/bin/python", "/venv/bin/vramscope", "run", "-m", "pkg.train"], "pkg.train"),
        (["/venv/bin/vramscope", "serve", "--port", "8000"], "vramscope"),
        (["python"], ""),
        ([], ""),
    ],
)
def test_a_process_is_called_by_what_the_user_runs(given: list[str], name: str) -> None:
    assert name_of(given) == name
