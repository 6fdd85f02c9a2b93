from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vramscope.lifecycle import Ending, Lifecycle, ending_of
from vramscope.oom.out_of_memory_error import place_of
from vramscope.stopped import Stopped


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (None, Ending("exit", 0)),
        (SystemExit(), Ending("exit", 0)),
        (SystemExit(3), Ending("exit", 3)),
        (SystemExit(-1), Ending("exit", 255)),
        (SystemExit("so long"), Ending("exit", 1, "so long")),
        (ValueError("bad"), Ending("exception", 1, "ValueError: bad")),
        (KeyboardInterrupt(), Ending("exception", 130, "KeyboardInterrupt: ")),
        (Stopped("enough"), Ending("exception", 1, "Stopped: enough")),
    ],
)
def test_what_left_the_script_says_how_it_ended(
    error: BaseException | None, ending: Ending
) -> None:
    assert ending_of(error) == ending


def test_the_text_of_an_exception_is_bounded() -> None:
    assert len(ending_of(ValueError("x" * 10_000)).text) == 500


def test_an_exception_that_cannot_say_what_it_is_stays_what_it_is() -> None:
    class Wordless(RuntimeError):
        def __str__(self) -> str:
            raise KeyError("no words")

    assert ending_of(Wordless()) == Ending("exception", 1, "Wordless: ")
    assert place_of(Wordless()) is None


def run(code: str) -> subprocess.CompletedProcess[str]:
    head = (
        "import os, sys\n"
        "from vramscope.lifecycle import Lifecycle\n"
        "life = Lifecycle(lambda e: print(e.reason, e.exit_code, e.text, flush=True),\n"
        "                 lambda: print('forked', flush=True))\n"
        "life.install()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", head + code], capture_output=True, text=True, timeout=30
    )


def test_a_normal_end_has_no_known_exit_code() -> None:
    assert run("sys.exit(3)").stdout == "exit None \n"


def test_an_uncaught_exception_is_known_and_shown_as_ever() -> None:
    done = run("raise ValueError('bad')")
    assert done.stdout == "exception 1 ValueError: bad\n"
    assert done.stderr.endswith("ValueError: bad\n")
    assert "lifecycle" not in done.stderr
    assert done.returncode == 1


def test_a_hook_of_the_user_is_called_and_chained() -> None:
    done = run(
        "previous = sys.excepthook\n"
        "def hook(*args):\n    print('theirs'); previous(*args)\n"
        "sys.excepthook = hook\n"
        "life.remove()\n"
        "life2 = Lifecycle(lambda e: print(e.reason, flush=True), lambda: None); life2.install()\n"
        "raise ValueError"
    )
    assert done.stdout == "theirs\nexception\n"
    assert done.stderr.count("Traceback") == 1


def test_an_exception_that_the_job_only_shows_is_not_its_end() -> None:
    done = run(
        "try:\n    raise ValueError('shown')\n"
        "except ValueError:\n    sys.excepthook(*sys.exc_info())\n"
        "print('went on', flush=True)"
    )
    assert done.stdout == "went on\nexit None \n"
    assert done.stderr.endswith("ValueError: shown\n")


def test_an_exception_at_the_prompt_is_not_the_end() -> None:
    done = run("import code\nsys.ps1 = '>'\nraise ValueError('at the prompt')")
    assert done.stdout == "exit None \n"


def test_after_remove_nothing_happens_at_exit() -> None:
    assert run("life.remove()").stdout == ""


def test_a_forked_child_is_told_and_is_silent_at_its_exit() -> None:
    done = run(
        "pid = os.fork()\n"
        "if pid == 0:\n    sys.exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "print('parent', flush=True)"
    )
    assert done.stdout == "forked\nparent\nexit None \n"


def test_sigterm_stays_what_it_is() -> None:
    done = run("import signal; print(signal.getsignal(signal.SIGTERM)); os.kill(os.getpid(), 15)")
    assert done.returncode == -15
    assert "exit" not in done.stdout


def test_many_lives_leave_one_function_to_call_at_exit() -> None:
    done = run(
        "import atexit\nbefore = atexit._ncallbacks()\nlife.remove()\n"
        "for _ in range(5):\n"
        "    life = Lifecycle(lambda e: print(e.reason, flush=True), lambda: None)\n"
        "    life.install(); life.remove()\n"
        "life.install()\nprint(atexit._ncallbacks() - before, flush=True)"
    )
    assert done.stdout == "0\nexit\n"


def test_a_child_that_forgot_its_exit_handlers_can_be_watched() -> None:
    done = run(
        "import atexit\npid = os.fork()\n"
        "if pid == 0:\n    atexit._clear()\n"
        "    Lifecycle(lambda e: print('child', e.reason, flush=True), lambda: None).install()\n"
        "    sys.exit(0)\n"
        "os.waitpid(pid, 0)"
    )
    assert done.stdout == "forked\nchild exit\nexit None \n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(
    ("work", "ending"),
    [
        ("return", "exit 0 "),
        ("sys.exit(3)", "exit 3 "),
        ("raise ValueError('bad')", "exception 1 ValueError: bad"),
    ],
)
def test_the_end_of_a_child_of_multiprocessing_is_known(
    tmp_path: Path, method: str, work: str, ending: str
) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from vramscope.lifecycle import Lifecycle\n"
        "def show(e): print(e.reason, e.exit_code, e.text, flush=True)\n"
        f"def work():\n    Lifecycle(show, lambda: None).install()\n    {work}\n"
        "if __name__ == '__main__':\n"
        f"    child = multiprocessing.get_context({method!r}).Process(target=work)\n"
        "    child.start()\n    child.join()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{ending}\n"


def test_install_and_remove_leave_the_hook_as_it_was() -> None:
    before = sys.excepthook
    life = Lifecycle(lambda ending: None, lambda: None)
    life.install()
    assert sys.excepthook != before
    life.remove()
    assert sys.excepthook is before
    assert os.getpid() > 0
