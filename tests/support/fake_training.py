"""Python processes that look from outside as if torch were loaded in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = """
import mmap, os, sys, threading, time
library, mode, *threads = sys.argv[1:]

def load():
    with open(library, "rb") as file:
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

def show(name):
    with open("/proc/thread-self/comm", "w") as comm:
        comm.write(name)
    ready.release()
    threading.Event().wait()

def be(threads):
    for name in threads:
        threading.Thread(target=show, args=(name,), daemon=True).start()
        ready.acquire()

def say(pid):
    os.write(1, b"%d\\n" % pid)

def end_with_the_parent():
    # The input is shared by all: whoever reads its end was told to go.
    sys.stdin.read()
    os._exit(0)

def child(threads):
    if os.fork() == 0:
        be(threads)
        say(os.getpid())
        end_with_the_parent()

ready = threading.Semaphore(0)
mapped = load()
if mode == "worker":
    child([])
elif mode == "rank":
    child(threads)
elif mode == "again":
    if os.environ.get("AGAIN") is None:
        os.environ["AGAIN"] = "1"
        os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, *sys.argv])
elif mode == "alone":
    be(threads)
say(os.getpid())
end_with_the_parent()
"""


class FakeTorch:
    """A folder with what a torch installation shows of itself.

    Args:
        folder: where ``torch`` is to lie; the path of a ``site-packages`` for instance.
        version: what ``torch/version.py`` says.
    """

    def __init__(self, folder: Path, version: str = "2.9.1+cu128") -> None:
        self.folder = folder / "torch"
        self.library = self.folder / "lib" / "libtorch_cpu.so"
        self.library.parent.mkdir(parents=True)
        self.library.write_bytes(b"\x7fELF" + bytes(8192))
        (self.folder / "version.py").write_text(
            f"from typing import Optional\n\n__version__ = '{version}'\ndebug = False\n"
        )
        self.script = folder / "train.py"
        self.script.write_text(SCRIPT)

    @contextmanager
    def running(self, mode: str = "alone", *threads: str, count: int = 1) -> Iterator[list[int]]:
        """Start a process that has "torch" loaded.

        Args:
            mode: "alone", or with a second process: "worker" and "rank" fork it, "again" starts
                the same command anew.
            threads: names of threads; with "rank" those of the second process.
            count: how many processes are waited for.

        Returns:
            Their numbers, that of the first process first.
        """
        command = [sys.executable, "train.py", str(self.library), mode, *threads]
        with subprocess.Popen(
            command,
            cwd=self.script.parent,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            found = {int(process.stdout.readline()) for _ in range(count)}
            assert process.pid in found
            yield [process.pid, *sorted(found - {process.pid})]
            process.communicate()
