from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vramscope.attaching.injected_line import injected_line

RUNS_IT = """
import sys, threading
line = bytes.fromhex(sys.argv[1])
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
        f"def arrive(folder):\n    open({str(mark)!r}, 'w').write(folder)\n"
    )
    ended = run(injected_line(str(tmp_path)), mark)
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
    ended = run(injected_line(str(tmp_path)), mark)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "folder", ['/tmp/it\'s "quoted"\\', "/tmp/{braces}", "/tmp/sp ace/ü\udcff"]
)
def test_any_folder_can_be_named(folder: str) -> None:
    line = injected_line(folder)
    started: list[object] = []
    fake = type("m", (), {"start_new_thread": lambda code, args: started.append(args[0])})
    names: dict[str, object] = {"__builtins__": {"__import__": lambda name: fake}}
    fake.exec = None  # type: ignore[attr-defined]
    exec(line, names)
    assert f" f={folder!a}\n" in str(started[0])
    assert len(line) < 1000


def test_the_thread_that_is_first_to_import_threading_is_the_main_one(tmp_path: Path) -> None:
    # Python up to 3.12 would otherwise take the thread of the arrival for the main one.
    mark = tmp_path / "mark"
    (tmp_path / "arrive.py").write_text(
        f"def arrive(folder):\n    import threading\n    open({str(mark)!r}, 'w').close()\n"
    )
    script = RUNS_IT.format(mark=str(mark)).replace("import sys, threading\n", "import sys\n", 1)
    script = script.replace("assert threading.main", "import threading; assert threading.main")
    line = injected_line(str(tmp_path))
    command = [sys.executable, "-S", "-c", script, line.hex()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
