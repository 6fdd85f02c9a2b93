from __future__ import annotations

import _thread
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from vramscope.attaching.injected_line import injected_line

PID = 12345678  # replaced by that of the process that runs the line
RUNS_IT = """
import os, sys, threading
line = bytes.fromhex(sys.argv[1]).replace(b"12345678", b"%d" % os.getpid())
names = {{"__name__": "__main__", "exec": None, "open": None, "BaseException": None}}
before = dict(names)
exec(line, names)
names.pop("__builtins__")
assert names == before, names
import time
deadline = time.monotonic() + 20
import os
while not os.path.exists({mark!r}) and time.monotonic() < deadline:
    time.sleep(0.01)
assert threading.main_thread().ident == threading.get_ident()
"""


def run(line: bytes, mark: Path) -> subprocess.CompletedProcess[str]:
    script = RUNS_IT.format(mark=str(mark))
    command = [sys.executable, "-c", script, line.hex()]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_it_runs_the_folders_program_and_leaves_no_name(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "arrive.py").write_text(
        f"def arrive(folder, descriptor, error):\n    open({str(mark)!r}, 'w').write(folder)\n"
    )
    ended = run(injected_line(str(tmp_path), PID), mark)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert mark.read_text() == str(tmp_path)


@pytest.mark.parametrize("program", [None, "def arrive(", "raise SystemExit(3)", "1 / 0"])
def test_nothing_comes_out_when_the_folder_is_gone_or_wrong(
    tmp_path: Path, program: str | None
) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    if program is not None:
        (tmp_path / "arrive.py").write_text(program)
    ended = run(injected_line(str(tmp_path), PID), mark)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "folder", ['/tmp/it\'s "quoted"\\', "/tmp/{braces}", "/tmp/sp ace/ü\udcff"]
)
def test_any_folder_can_be_named(folder: str) -> None:
    line = injected_line(folder, PID)
    executed: list[str] = []
    fake = SimpleNamespace(exec=lambda code, names: executed.append(code))
    exec(line, {"__builtins__": {"__import__": lambda name: fake}})
    assert f" f={folder!a};" in executed[0]
    assert len(line) < 1024


def test_the_thread_that_is_first_to_import_threading_is_the_main_one(tmp_path: Path) -> None:
    # Python up to 3.12 would otherwise take the thread of the arrival for the main one.
    mark = tmp_path / "mark"
    (tmp_path / "arrive.py").write_text(
        f"def arrive(f, d, e):\n    import threading\n    open({str(mark)!r}, 'w').close()\n"
    )
    script = RUNS_IT.format(mark=str(mark)).replace(
        "import os, sys, threading\n", "import os, sys\n", 1
    )
    script = script.replace("assert threading.main", "import threading; assert threading.main")
    line = injected_line(str(tmp_path), PID)
    command = [sys.executable, "-S", "-c", script, line.hex()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


def run_as_the_thread_would(line: bytes) -> None:
    """Run here what the line starts a thread for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", lambda run, arguments: run(*arguments))
        exec(line, {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose program leaves ``mark`` beside it."""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    mark = str(tmp_path / "mark")
    (folder / "arrive.py").write_text(f"def arrive(f, d, e):\n    open({mark!r}, 'w').close()\n")
    return folder


@pytest.mark.parametrize("whose", ["mine", "all", "link", "others"])
def test_only_a_folder_that_is_this_users_alone_is_read(folder: Path, whose: str) -> None:
    # Armed, given up, removed: in /tmp anybody can then make another folder of the same name.
    if whose == "all":
        folder.chmod(0o755)
    elif whose == "link":
        folder.rename(folder.with_name("real"))
        folder.symlink_to("real")
    elif whose == "others":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(folder, 1234, 1234)
    run_as_the_thread_would(injected_line(str(folder), os.getpid()))
    assert folder.with_name("mark").exists() is (whose == "mine")


def test_a_child_that_was_forked_with_the_line_armed_leaves_it_to_its_parent(folder: Path) -> None:
    run_as_the_thread_would(injected_line(str(folder), os.getppid()))
    assert not folder.with_name("mark").exists()


def test_without_a_thread_the_folders_program_is_told(folder: Path) -> None:
    (folder / "arrive.py").write_text(
        "def arrive(f, d, e):\n    open(f + '/../' + str(e), 'w').close()"
    )

    def refuse(run: object, arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", refuse)
        exec(injected_line(str(folder), os.getpid()), {})
    assert folder.with_name("1").exists()


RAISED_BY_A_HANDLER = """
import _thread, sys, time
class TimeLimit(Exception):
    def __init__(self, seconds, words): super().__init__(words)
line = bytes.fromhex(sys.argv[1])
start = _thread.start_new_thread
for raised in (KeyboardInterrupt(), TimeLimit(3, "late")):
    def interrupted(*_):
        _thread.start_new_thread = start
        raise raised
    _thread.start_new_thread = interrupted
    try:
        exec(line, {})
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(0.001)
        print("nothing was raised")
    except BaseException as error:
        print(error is raised, type(error).__name__)
time.sleep(0.1)
print("no more")
"""


def test_what_a_handler_of_the_job_raises_in_it_is_raised_in_the_job(tmp_path: Path) -> None:
    line = injected_line(str(tmp_path), PID)
    command = [sys.executable, "-c", RAISED_BY_A_HANDLER, line.hex()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["True KeyboardInterrupt", "True TimeLimit", "no more"]
