from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from vramscope.launch import LaunchError, Program

LAUNCH = """
import sys
from vramscope.launch import LaunchError, Program
words = sys.argv[1:]
is_module = words[0] == "-m"
words = words[is_module:]
seen = []
try:
    program = Program(words[0], words[1:], is_module=is_module)
    program.check()
    program.run(seen.append)
except LaunchError as error:
    sys.exit(f"launch error: {error}")
"""

SHOW = """
import __main__, atexit, os, sys
name = "\\n".join([
    str(sys.argv), sys.path[0], __name__, str(__file__), str(__package__),
    type(__loader__).__name__,
    str(__spec__ and __spec__.name), str(sorted(globals())), str(__main__.__dict__ is globals()),
    str(sys.stdin.read()),
])
atexit.register(lambda: print(name, "at exit", __main__.name == name))

def boom(kind):
    if kind == "raise":
        raise ValueError("boom") from KeyError("cause")
    if kind == "exit":
        sys.exit(7)
    if kind == "exit-text":
        sys.exit("so long")
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "hook":
        sys.excepthook = lambda kind, error, trace: print("hook", trace.tb_frame.f_code.co_name)
        raise ValueError("to the hook")

if len(sys.argv) > 1:
    boom(sys.argv[1])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "launch.py").write_text(LAUNCH)
    jobs = tmp_path / "jobs"
    (jobs / "package").mkdir(parents=True)
    (jobs / "show.py").write_text(SHOW)
    (jobs / "wrong.py").write_text("x = (\n")
    (jobs / "package" / "__init__.py").write_text("")
    (jobs / "package" / "__main__.py").write_text(SHOW)
    (jobs / "package" / "part.py").write_text(SHOW)
    (jobs / "app").mkdir()
    (jobs / "app" / "__main__.py").write_text("import helper, sys\n" + SHOW)
    (jobs / "app" / "helper.py").write_text("")
    with zipfile.ZipFile(jobs / "app.zip", "w") as archive:
        archive.writestr("__main__.py", SHOW)
    (jobs / "link.py").symlink_to(jobs / "app" / "__main__.py")
    return tmp_path


def run(folder: Path, *command: str) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder / "jobs",
        env=environment,
        input="from stdin",
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "program",
    [
        "show.py",
        "./show.py --flag -x",
        "../jobs/show.py a",
        "link.py",
        "show.py raise",
        "show.py exit",
        "show.py exit-text",
        "show.py interrupt",
        "show.py hook",
        "wrong.py",
        "app one",
        "app.zip two",
        "-m package three",
        "-m package.part",
        "-m show exit",
        "-m json.tool --help",
    ],
)
def test_a_program_runs_as_under_python_itself(folder: Path, program: str) -> None:
    words = program.split()
    plain = run(folder, *words)
    ours = run(folder, str(folder / "launch.py"), *words)
    assert ours == plain


def test_a_command_of_this_python_runs_by_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = folder / "bin" / "show-it"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\n{SHOW}")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    plain = run(folder, str(command), "one", "exit")
    ours = run(folder, str(folder / "launch.py"), "show-it", "one", "exit")
    assert ours == plain


def test_a_command_without_a_script_runs_by_its_entry_point(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = folder / "site"
    (site / "show_it-1.dist-info").mkdir(parents=True)
    (site / "show_it-1.dist-info" / "METADATA").write_text("Name: show-it\nVersion: 1\n")
    (site / "show_it-1.dist-info" / "entry_points.txt").write_text(
        "[console_scripts]\nshow-it = show_it:main\n"
    )
    (site / "show_it.py").write_text(
        "import sys\n"
        "def main():\n"
        "    print(sys.argv[1:], sys._getframe(1).f_globals['__name__'])\n"
        "    return 4\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert run(folder, str(folder / "launch.py"), "show-it", "--lr", "3") == (
        4,
        "['--lr', '3'] __main__\n",
        "",
    )


@pytest.mark.parametrize(
    ("name", "is_module", "expected"),
    [
        ("torchrun", False, True),
        ("/env/bin/deepspeed", False, True),
        ("torch.distributed.run", True, True),
        ("train.py", False, False),
        ("torchrun", True, False),
    ],
)
def test_what_only_starts_ranks_is_known(name: str, is_module: bool, expected: bool) -> None:
    assert Program(name, [], is_module=is_module).is_launcher is expected


def test_what_cannot_be_found_is_said_before_anything_runs(folder: Path) -> None:
    with pytest.raises(LaunchError, match=r"no script at 'no_such' and no command of that name"):
        Program("no_such", []).check()
    with pytest.raises(LaunchError, match="is not a Python script"):
        Program("sh", []).check()


def test_a_module_that_raises_shows_its_own_frames_only(folder: Path) -> None:
    code, _, error = run(folder, str(folder / "launch.py"), "-m", "package", "raise")
    assert code == 1
    assert "launch.py" not in error
    frames = [line for line in error.splitlines() if line.startswith("  File")]
    assert len(frames) == 2
    assert all("package/__main__.py" in frame for frame in frames)


def test_a_module_that_does_not_exist_is_said(folder: Path) -> None:
    for name in ("no_such_module", "package.nope", "json.tool.deeper"):
        code, _, error = run(folder, str(folder / "launch.py"), "-m", name)
        assert code == 1
        assert error == f"launch error: no module named {name!r} that can be run\n"


def test_a_spawned_child_finds_the_script(folder: Path) -> None:
    (folder / "jobs" / "spawns.py").write_text(
        "import multiprocessing\n"
        "def work(x): return x + 1\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(work, [1, 2]))\n"
    )
    assert run(folder, str(folder / "launch.py"), "spawns.py") == (0, "[2, 3]\n", "")


@pytest.mark.parametrize("program", [["{jobs}/show.py"], ["-m", "this"]])
def test_a_working_folder_that_is_gone_matters_no_more_than_to_python(
    folder: Path, program: list[str]
) -> None:
    words = [word.format(jobs=folder / "jobs") for word in program]
    gone = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    expected = run_shell(folder, gone, *words)
    assert expected[0] == 0
    assert run_shell(folder, gone, str(folder / "launch.py"), *words) == expected


def run_shell(folder: Path, script: str, *command: str) -> tuple[int, str, str]:
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, *command],
        cwd=folder,
        input="from stdin",
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.returncode, done.stdout, done.stderr
