from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.attach_client import running
from tests.support.job_process import child_environment
from tests.support.made_processes import made_process
from vramscope import __version__
from vramscope.attaching import importable as importable_module
from vramscope.attaching.importable import (
    Importable,
    ask_importable,
    check_importable,
    environment_of,
    install,
    interpreter_name,
    shown_install_command,
)
from vramscope.attaching.outcome import AttachError
from vramscope.processes.process import Ids, read_process

LIVES = "print('ready', flush=True); import sys; sys.stdin.read()"
OWN = Ids(os.geteuid(), os.geteuid(), os.geteuid())
FOUND = Importable("/venv/bin/python", (3, 11), has_pip=True, version=__version__)
MISSING = Importable("/venv/bin/python", (3, 11), has_pip=True, is_missing=True)


def test_the_interpreter_of_a_process_is_asked_as_the_process_runs_it(tmp_path: Path) -> None:
    environment = child_environment(PYTHONSTARTUP="/nowhere", VRAMSCOPE_ATTACH="1")
    with running(sys.executable, "-c", LIVES, environment=environment) as job:
        answer = ask_importable(read_process(job.pid))
    assert (answer.executable, answer.version) == (sys.executable, __version__)
    assert str(Path(importable_module.__file__).parents[2]) in answer.folders
    check_importable(made_process(), answer)


@pytest.mark.parametrize(
    "flags", [["-I", "-W", "ignore", "-S"], ["-ISWignore"], ["-uI", "-Xdev", "-BS"]]
)
def test_flags_that_hide_modules_count(flags: list[str]) -> None:
    with running(sys.executable, *flags, "-c", LIVES) as job:
        answer = ask_importable(read_process(job.pid))
    assert (answer.version, answer.is_missing) == ("", True)


@pytest.mark.parametrize(
    "flags",
    [["-Wignore::SyntaxWarning"], ["-uWignore::EncodingWarning"], ["-Xfrozen_modules=on", "-s"]],
)
def test_the_value_of_an_option_is_no_flag(flags: list[str]) -> None:
    with running(sys.executable, *flags, "-c", LIVES) as job:
        answer = ask_importable(read_process(job.pid))
    assert (answer.version, answer.error) == (__version__, "")


def test_a_virtual_environment_is_found_from_another_folder(tmp_path: Path) -> None:
    # As ./venv/bin/python train.py, of a job that has gone elsewhere since.
    program = os.path.relpath(sys.executable, tmp_path)
    code = f"import os; os.chdir('/'); {LIVES}"
    start = f'cd "{tmp_path}" && exec {program} -c "$CODE"'
    environment = child_environment(CODE=code, VIRTUAL_ENV="/nowhere")
    with running("sh", "-c", start, environment=environment) as job:
        answer = ask_importable(read_process(job.pid))
    assert answer.version == __version__
    assert os.path.samefile(Path(answer.executable).parents[1], sys.prefix)


def test_only_what_says_where_modules_are_is_taken_from_the_environment() -> None:
    given = {
        "PATH": "/bin:/usr/bin",
        "PYTHONPATH": "/a:/b",
        "LD_LIBRARY_PATH": "/lib/x",
        "PIP_INDEX_URL": "https://mirror",
        "https_proxy": "http://proxy",
    }
    others = {
        "AWS_SECRET": "x",
        "PYTHONSTARTUP": "/s",
        "PYTHONINSPECT": "1",
        "VRAMSCOPE_ATTACH": "1",
    }
    program = str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}"))
    with running(program, "-c", LIVES, environment=given | others) as job:
        assert environment_of(read_process(job.pid)) == given


def test_an_environment_that_cannot_be_read_is_said_to_be() -> None:
    with pytest.raises(AttachError, match="the environment of process 2147483647"):
        environment_of(made_process(2**31 - 1))


def test_the_version_of_this_command_is_the_only_one_accepted() -> None:
    process = made_process(uids=OWN)
    check_importable(process, FOUND)
    command = f"/venv/bin/python -m pip install vramscope=={__version__}"
    for answer, words in (
        (MISSING, "cannot import vramscope; install it there with: "),
        (
            Importable("/venv/bin/python", (3, 11), has_pip=True, version="0.0.1"),
            f"has vramscope 0.0.1, and this is {__version__}; install it there with: ",
        ),
        (
            Importable("/venv/bin/python", (3, 11), has_pip=True, error="ImportError: msgspec"),
            "cannot import vramscope (ImportError: msgspec); install it there with: ",
        ),
    ):
        with pytest.raises(AttachError) as raised:
            check_importable(process, answer)
        assert words + command in str(raised.value)
        assert raised.value.kind == "not_importable"


@pytest.mark.parametrize(
    ("changes", "has_pip", "command"),
    [
        ({"uids": OWN}, True, "'/my venv/bin/python' -m pip install"),
        ({"uids": OWN}, False, "uv pip install '--python=/my venv/bin/python'"),
        (
            {"uids": OWN, "same_root": False},
            True,
            "nsenter --all --target=41327 '/my venv/bin/python'",
        ),
        ({"uids": Ids(54321, 54321, 54321)}, True, "sudo -u 54321 '/my venv/bin/python' -m pip"),
    ],
)
def test_the_command_fits_the_environment(
    changes: dict[str, Any], has_pip: bool, command: str
) -> None:
    answer = Importable("/my venv/bin/python", (3, 11), has_pip=has_pip)
    shown = shown_install_command(made_process(**changes), answer)
    assert shown.startswith(command)
    assert shown.endswith(f"vramscope=={__version__}")


def test_without_pip_nothing_is_installed() -> None:
    answer = Importable("/venv/bin/python", (3, 11), has_pip=False)
    with pytest.raises(AttachError, match="has no pip; install vramscope there with: uv pip"):
        install(made_process(uids=OWN), answer)


@pytest.mark.parametrize(
    ("argv", "environment", "name"),
    [
        (("python", "train.py"), {}, None),
        (("/venv/bin/python3.11", "x"), {}, None),
        (("ray::train",), {}, "/usr/bin/python3.11"),
        ((), {}, "/usr/bin/python3.11"),
        (("bin/python", "x"), {"PWD": "{folder}"}, "{folder}/bin/python"),
        (("./bin/python", "x"), {"PWD": "/nowhere"}, "/usr/bin/python3.11"),
        (("ray::train",), {"VIRTUAL_ENV": "{folder}"}, "{folder}/bin/python"),
        (("ray::train",), {"CONDA_PREFIX": "{folder}"}, "{folder}/bin/python"),
        (("ray::train",), {"VIRTUAL_ENV": "/nowhere"}, "/usr/bin/python3.11"),
    ],
)
def test_a_job_that_has_renamed_itself_is_run_as_its_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    environment: dict[str, str],
    name: str | None,
) -> None:
    monkeypatch.setattr(importable_module, "read_memory_map", lambda pid: None)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").touch()
    process = made_process(os.getpid(), argv=argv)
    given = {k: v.format(folder=tmp_path) for k, v in environment.items()}
    expected = None if name is None else name.format(folder=tmp_path)
    assert interpreter_name(process, given) == expected


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="not in a virtual environment")
def test_where_libraries_are_loaded_from_says_more_than_what_was_active() -> None:
    # Renaming itself, a job writes over its environment as well.
    process = made_process(os.getpid(), argv=("ray::train",))
    assert interpreter_name(process, {"VIRTUAL_ENV": "/usr"}) == f"{sys.prefix}/bin/python"


Runner = Callable[..., subprocess.CompletedProcess[str]]


def fake(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    monkeypatch.setattr(importable_module, "run_own_interpreter", run)
    monkeypatch.setattr(importable_module, "environment_of", lambda process: {})


def test_an_interpreter_that_cannot_be_asked_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        raise OSError(1, "enter its mnt namespace: Operation not permitted")

    fake(monkeypatch, refuse)
    with pytest.raises(AttachError, match=r"cannot be run: .*enter its mnt namespace"):
        ask_importable(made_process())

    def hang(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired("python", 60)

    fake(monkeypatch, hang)
    with pytest.raises(AttachError, match="did not end within 60 s"):
        ask_importable(made_process())

    def babble(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess("python", 1, "", "line\nFatal Python error: no codec\n")

    fake(monkeypatch, babble)
    with pytest.raises(AttachError, match=r"has vramscope: Fatal Python error: no codec"):
        ask_importable(made_process())


def test_pip_gets_the_settings_of_who_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        given.append((arguments, options["environment"]))
        return subprocess.CompletedProcess("python", 0, "", "")

    fake(monkeypatch, run)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror")
    monkeypatch.setenv("SECRET", "x")
    install(made_process(7), MISSING)
    [((pid, arguments), environment)] = given
    assert (pid, arguments) == (7, ["-m", "pip", "install", f"vramscope=={__version__}"])
    assert environment["PIP_INDEX_URL"] == "https://mirror"
    assert "SECRET" not in environment
