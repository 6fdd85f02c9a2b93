from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import wait_until
from vramscope.attaching import arrive
from vramscope.attaching.request import Request
from vramscope.processes.process import read_process

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
PROGRAM = Path(arrive.__file__).read_text()


@pytest.fixture
def make() -> Iterator[Callable[..., Request]]:
    made: list[Request] = []

    def make_request(**question: Any) -> Request:
        made.append(Request(read_process(os.getpid()), question, {"arrive.py": PROGRAM}))
        return made[-1]

    yield make_request
    for request in made:
        request.close()


def arrive_in(path: str) -> None:
    """What the injected line does once it has found the folder to be its own."""
    folder = os.open(path, FOLDER)
    try:
        arrive.arrive(path, folder)
    finally:
        os.close(folder)


def answer_of(request: Request) -> dict[str, Any]:
    path = Path(request.folder, "answer.json")
    wait_until(path.exists, bool, "an answer")
    answer: dict[str, Any] = json.loads(path.read_text())
    return answer


def test_a_request_is_carried_out_on_a_named_daemon_thread(
    make: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, str, bool]] = []

    def act(request: dict[str, Any], reply: Callable[[dict[str, Any]], None]) -> None:
        thread = threading.current_thread()
        seen.append((request, thread.name, thread.daemon))
        reply({"ok": True})

    monkeypatch.setattr("vramscope.arrival.act", act)
    request = make(action="attach", options={"run": "x"})
    arrive_in(request.folder)
    assert answer_of(request) == {"ok": True}
    assert seen == [({"action": "attach", "options": {"run": "x"}}, "vramscope-arrival", True)]
    assert request.is_picked_up()


@pytest.mark.parametrize("is_main", [True, False])
def test_a_process_that_can_start_no_thread_says_so(
    make: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, is_main: bool
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    if not is_main:
        monkeypatch.setattr(threading.Thread, "start", refuse)
    request = make(action="attach")
    descriptors = len(os.listdir("/proc/self/fd"))
    folder = os.open(request.folder, FOLDER)
    arrive.arrive(request.folder, folder, is_main)
    os.close(folder)
    answer = request.answer()
    assert answer is not None
    assert not answer.ok
    assert "it can start no further thread" in answer.message
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_request_that_was_cancelled_or_is_gone_is_not_carried_out(
    make: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrive, "carry_out", lambda *_: pytest.fail("carried out"))
    request = make(action="attach")
    assert request.cancel()
    folder = os.open(request.folder, FOLDER)
    arrive.arrive(request.folder, folder)
    request.close()
    arrive.arrive(request.folder, folder)
    os.close(folder)


CLIENT = """
import os, sys
from vramscope.attaching.request import Request
from vramscope.processes.process import read_process
request = Request(read_process(int(sys.argv[1])), {"action": "attach"}, {})
print(request.folder, flush=True)
sys.stdin.read()
"""


def test_a_client_that_was_killed_has_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[object] = []
    monkeypatch.setattr(arrive, "_import_arrival", imported.append)
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with client:
        assert client.stdout is not None
        folder = client.stdout.readline().strip()
        descriptor = os.open(folder, FOLDER)
        assert not arrive.client_is_gone(descriptor)
        os.close(descriptor)
        client.kill()
    arrive_in(folder)
    wait_until(lambda: os.path.exists(folder), lambda there: not there, "the folder to be gone")
    assert not imported


OUTSIDE = """
import json, os, sys, threading, time
sys.path[:] = [p for p in sys.path if "vramscope" not in p and "site-packages" not in p]
sys.path[:] = [p for p in sys.path if not p.endswith(("/agent", "/protocol", "/analysis"))]
before = list(sys.path), list(sys.meta_path)
names = {"__name__": "vramscope_arrive"}
folder = sys.argv[1]
exec(open(folder + "/arrive.py").read(), names)
names["carry_out"](folder, os.open(folder, os.O_RDONLY), lambda: None)
print(json.dumps({
    "answer": json.load(open(folder + "/answer.json")),
    "path": sys.path == before[0],
    "finders": len(sys.meta_path) - len(before[1]),
    "others": names["FolderFinder"](json.loads(sys.argv[2])).find_spec("pytest") is not None,
}))
"""


def run_outside(request: Request, folders: list[str]) -> dict[str, Any]:
    """Carry out a request in a process whose own search path has no vramscope."""
    os.rename(f"{request.folder}/request.json", f"{request.folder}/picked_up")
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", OUTSIDE, request.folder, json.dumps(folders)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ended.stderr == ""
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def folders_of(*names: str) -> list[str]:
    modules = [__import__(name) for name in names]
    return [str(Path(str(module.__file__)).parents[1]) for module in modules]


def test_vramscope_is_found_where_the_client_has_found_it(make: Callable[..., Request]) -> None:
    folders = folders_of("vramscope", "vramscope_protocol", "msgspec", "websockets")
    result = run_outside(make(action="detach", folders=folders), folders)
    assert result["answer"]["ok"]
    assert result["answer"]["message"] == "it was not attached"
    # What else lies in those folders must not become importable for the job.
    assert result["path"]
    assert not result["others"]


def test_without_vramscope_the_reason_is_the_answer(
    make: Callable[..., Request], tmp_path: Path
) -> None:
    result = run_outside(make(action="attach", folders=[str(tmp_path)]), [])
    assert not result["answer"]["ok"]
    assert "No module named 'vramscope'" in result["answer"]["message"]
    assert (result["path"], result["finders"]) == (True, 0)


def test_a_process_without_vramscope_is_not_attached(make: Callable[..., Request]) -> None:
    answer = run_outside(make(action="detach"), [])["answer"]
    assert (answer["ok"], answer["already"]) == (True, True)


FORKS = """
import os, sys, threading
names = {"__name__": "vramscope_arrive"}
exec(open(sys.argv[1]).read(), names)
inside, may_end = threading.Event(), threading.Event()
def importing():
    done = names["_delay_forks"]()
    inside.set()
    may_end.wait(20)
    print("imported", flush=True)
    done()
thread = threading.Thread(target=importing)
thread.start()
inside.wait(20)
threading.Timer(0.3, may_end.set).start()
pid = os.fork()
if pid == 0:
    os._exit(0)
print("forked", os.waitpid(pid, 0)[1], flush=True)
thread.join()
"""


def test_a_fork_waits_for_the_import(tmp_path: Path) -> None:
    # Otherwise the child would inherit locks of half imported modules, and hang on the next import.
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, arrive.__file__],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ended.stdout.splitlines() == ["imported", "forked 0"]


ENDS = """
import os, sys, time
sys.path[:] = [p for p in sys.path if "vramscope" not in p and "site-packages" not in p]
sys.path[:] = [p for p in sys.path if not p.endswith(("/agent", "/protocol", "/analysis"))]
program, folder, begun = sys.argv[1:]
names = {"__name__": "vramscope_arrive"}
exec(open(program).read(), names)
names["_END_WAITS_S"] = float(os.environ["LIMIT"])
names["arrive"](folder, os.open(folder, os.O_RDONLY))
while not os.path.exists(begun):
    time.sleep(0.01)
"""

SLOW = """
import os, time
open({begun!r}, "w").close()
time.sleep(float(os.environ["TAKES"]))
open({imported!r}, "w").close()
found_by = id
def act(request, reply):
    reply({{"ok": True}})
    time.sleep(60)
"""


@pytest.mark.parametrize(("takes", "limit", "is_waited_for"), [(0.5, 30.0, True), (60, 0.2, False)])
def test_the_end_of_the_job_waits_for_the_import(
    make: Callable[..., Request],
    tmp_path: Path,
    takes: float,
    limit: float,
    is_waited_for: bool,
) -> None:
    # Cut short, it would keep the lock of all imports, which the end of the job needs as well.
    begun, imported = tmp_path / "begun", tmp_path / "imported"
    (tmp_path / "vramscope").mkdir()
    (tmp_path / "vramscope/__init__.py").touch()
    slow = SLOW.format(begun=str(begun), imported=str(imported))
    (tmp_path / "vramscope/arrival.py").write_text(slow)
    request = make(action="attach", folders=[str(tmp_path)])
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ENDS, arrive.__file__, request.folder, str(begun)],
        env={**os.environ, "TAKES": str(takes), "LIMIT": str(limit)},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert imported.exists() is is_waited_for
