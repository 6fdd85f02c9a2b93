"""A container, made from this machine's own folders: namespaces, and a root of its own.

Inside, Python lies at /opt/python and vramscope at /opt/vramscope, paths that the host has not.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.interpreters import FOLDER, OfferedInterpreter
from tests.support.job_process import REPOSITORY, wait_until

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "usr", "etc")
_NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--fork")
_ENVIRONMENT = {
    "PATH": "/opt/python/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONPATH": "/opt/vramscope/site:/opt/vramscope/agent:/opt/vramscope/protocol:/opt/more",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "HOME": "/root",
    "LD_LIBRARY_PATH": "/opt/python/lib",
    "TMPDIR": "/tmp",
}


def why_no_containers() -> str | None:
    """Why this machine lets us make none; None if it does."""
    done = subprocess.run(
        ["unshare", *_NAMESPACES, "mount", "--make-rprivate", "/"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() or "unshare failed" if done.returncode else None


@dataclass(frozen=True)
class Container:
    """A running container.

    Attributes:
        python: path of its Python, as seen inside.
        pid: number of its process 1, the job, as the host sees it.
        first: its parent on the host, which has the job's output.
    """

    python: str
    pid: int
    first: subprocess.Popen[str]

    def wait_for_line(self, text: str) -> None:
        """Wait until the job has printed a line; fail if it ends before."""
        assert self.first.stdout is not None
        for line in self.first.stdout:
            if line.rstrip("\n") == text:
                return
        raise AssertionError(f"the job ended: {self.first.communicate()}")

    def command(self, arguments: Sequence[str], **environment: str) -> list[str]:
        """A command line that runs ``arguments`` inside, as ``docker exec`` would."""
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--ipc", "--uts", "--root"]
        if os.readlink(f"/proc/{self.pid}/ns/user") != os.readlink("/proc/self/ns/user"):
            enter.append("--user")
        settings = [f"{key}={value}" for key, value in (_ENVIRONMENT | environment).items()]
        return [*enter, "--wd", "env", "-i", *settings, *arguments]


def _child_of(first: subprocess.Popen[str]) -> int:
    children = Path(f"/proc/{first.pid}/task/{first.pid}/children")

    def number() -> str:
        return children.read_text() if first.poll() is None else "0"

    pid = int(wait_until(number, bool, "the container to start"))
    assert pid, f"the container ended: {first.communicate()}"
    return pid


@contextlib.contextmanager
def container(
    interpreter: OfferedInterpreter,
    arguments: Sequence[str],
    *,
    folders: dict[str, Path] | None = None,
    with_vramscope: bool = True,
    namespaces: Sequence[str] = (),
    setup: str = "",
    prefix: Sequence[str] = (),
    rootless: int = 0,
    **environment: str,
) -> Iterator[Container]:
    """Run this Python with ``arguments`` in a container; ended with everything in it at the exit.

    ``folders`` are shown inside at the paths that are their keys; ``setup`` is shell text, run in
    the container's root before the job; ``prefix`` is a command that becomes the job in the end,
    such as setpriv(1); ``namespaces`` are more options of unshare(1). ``rootless`` is the number of
    a user on the host: that user makes the container, and is root in it.
    """
    # Not below pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="vramscope-test-") as name:
        # Whoever is root inside makes its root.
        Path(name).chmod(0o777)
        root = Path(name) / "root"
        shown = _folders(interpreter, with_vramscope) | (folders or {})
        python = f"/opt/python/bin/{interpreter.executable.name}"
        script = _script(root, shown, setup, [*prefix, python, *arguments])
        first = subprocess.Popen(
            [*_maker(rootless), *namespaces, "sh", "-ec", script],
            env=_ENVIRONMENT | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        pid = _child_of(first)
        job = os.pidfd_open(pid)
        try:
            yield Container(python, pid, first)
        finally:
            # Everything in a pid namespace ends with its process 1.
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(job, signal.SIGKILL)
            os.close(job)
            output, errors = first.communicate()
            sys.stderr.write(output + errors)


def _maker(rootless: int) -> list[str]:
    unshare = ["unshare", *_NAMESPACES]
    if not rootless:
        return unshare
    become = ["setpriv", f"--reuid={rootless}", f"--regid={rootless}", "--clear-groups"]
    return [*become, *unshare, "--user", "--map-root-user"]


def _folders(interpreter: OfferedInterpreter, with_vramscope: bool) -> dict[str, Path]:
    # .../bin/python3.x, or .../usr/bin/python3.x of a Python that was unpacked or installed.
    shown = {f"/{name}": Path(f"/{name}") for name in _SYSTEM if Path(f"/{name}").is_dir()}
    shown["/opt/python"] = interpreter.executable.parents[1]
    if interpreter.executable.is_relative_to(FOLDER):
        # Its program names the libraries beside it by their full path.
        shown[str(interpreter.executable.parents[2])] = interpreter.executable.parents[2]
    if with_vramscope:
        shown["/opt/vramscope/site"] = interpreter.site
        shown["/opt/vramscope/agent"] = REPOSITORY / "agent"
        shown["/opt/vramscope/protocol"] = REPOSITORY / "protocol"
    return shown


def _script(root: Path, shown: dict[str, Path], setup: str, command: Sequence[str]) -> str:
    """Shell text that builds the root inside the new namespaces and becomes the command."""
    quote = shlex.quote
    lines = [
        "mount --make-rprivate /",
        f"mkdir {quote(str(root))}",
        f"mount -t tmpfs -o mode=755 root {quote(str(root))}",
        f"cd {quote(str(root))}",
        "mkdir -m 1777 tmp",
        "mkdir -p proc sys dev root old",
        "mount --rbind /dev dev",
        "mount -t tmpfs shm dev/shm",
        "mount -t proc proc proc",
    ]
    for inside, outside in shown.items():
        lines.append(f"mkdir -p {quote('.' + inside)}")
        lines.append(f"mount --rbind {quote(str(outside))} {quote('.' + inside)}")
    lines += [
        "pivot_root . old",
        "cd /",
        "umount -l old",
        "rmdir old",
        setup,
        "exec " + " ".join(map(quote, command)),
    ]
    return "\n".join(lines)
