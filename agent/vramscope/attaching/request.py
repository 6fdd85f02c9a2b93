"""A private folder in which the client asks a process for something and reads its answer.

It lies where the process finds it: in its mount namespace and below its root. What can be there
already was put there by strangers, so no symbolic link is followed and nothing but the answer of
the process itself is read.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Generator, Mapping
from types import TracebackType
from typing import Any, Final

import msgspec

from vramscope.attaching.outcome import MAX_ANSWER_BYTES, Answer, AttachError, decode_answer
from vramscope.processes.process import Process

PREFIX: Final = "vramscope-attach-"
_PLACES: Final = ("/tmp", "/dev/shm")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK: Final = "client.lock"
_MAX_PLACE: Final = 150


class Request:
    """One question to one process; a context manager that removes the folder at the end.

    Args:
        process: who is asked.
        question: what for; written as JSON, to be read by the process alone.
        files: further files by name, such as the program that reads the question.

    Raises:
        AttachError: there is no place that both sides can write to.
    """

    def __init__(
        self, process: Process, question: Mapping[str, Any], files: Mapping[str, str]
    ) -> None:
        self._process = process
        self._name = PREFIX + secrets.token_hex(8)
        self._place = self._folder = self._lock = -1
        self.folder = ""
        """As the process sees it."""
        self.stays = False
        """Whether the folder is only emptied at the end, so that nobody can take its name."""
        contents = {name: text.encode() for name, text in files.items()}
        contents["request.json"] = msgspec.json.encode(question)
        self._make(contents)

    def __enter__(self) -> Request:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, name: str, data: bytes) -> None:
        """Put a further file there, for the process to read."""
        with self._as_its_user():
            os.close(self._write(name, data))

    def is_picked_up(self) -> bool:
        """Whether the process has taken the request."""
        try:
            os.stat("picked_up", dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return False
        return True

    def cancel(self) -> bool:
        """Take the request back; ``False`` when the process has it already."""
        try:
            os.rename("request.json", "cancelled", src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            return False
        return True

    def answer(self) -> Answer | None:
        """What the process has answered so far."""
        data = self.read("answer.json")
        return None if data is None else decode_answer(data)

    def read(self, name: str) -> bytes | None:
        """A file that the process has written; ``None`` if there is none that can be its own."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(name, flags, dir_fd=self._folder)
        except OSError:
            return None
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != self._process.uids.effective:
                return None
            return os.read(file, MAX_ANSWER_BYTES)
        finally:
            os.close(file)

    def close(self) -> None:
        """Remove the folder: a process that arrives later finds nothing. Safe to call twice."""
        if self._folder >= 0:
            with contextlib.suppress(OSError):
                for name in os.listdir(self._folder):
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=self._folder)
        if self._place >= 0 and not self.stays:
            with contextlib.suppress(OSError):
                os.rmdir(self._name, dir_fd=self._place)
        for descriptor in (self._lock, self._folder, self._place):
            if descriptor >= 0:
                os.close(descriptor)
        self._lock = self._folder = self._place = -1

    def _make(self, contents: Mapping[str, bytes]) -> None:
        """Make the folder in the first place where that works."""
        pid = self._process.pid
        try:
            # The one link that is followed: the kernel's own.
            root = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise AttachError(f"the files of process {pid}: {error.strerror}", "folder") from None
        reason = ""
        try:
            for path in (*_PLACES, *self._working_folder()):
                try:
                    with self._as_its_user():
                        self._make_in(root, path, contents)
                    return
                except OSError as error:  # no such place, no right to write there, no room left
                    reason = f"{path}: {error.strerror}"
                    self.close()
        except BaseException:
            self.close()
            raise
        finally:
            os.close(root)
        raise AttachError(
            f"process {pid} and this command share no folder for a message ({reason}); "
            "give it a /tmp or /dev/shm that can be written to",
            "folder",
        )

    def _make_in(self, root: int, path: str, contents: Mapping[str, bytes]) -> None:
        self._place = _open_below(root, path)
        os.mkdir(self._name, 0o700, dir_fd=self._place)
        self.folder = os.path.join(path, self._name)
        self._folder = self._open_private()
        # Held for as long as this process lives: so the other side knows that somebody waits.
        self._lock = self._write(_LOCK, b"")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name, data in contents.items():
            os.close(self._write(name, data))

    def _working_folder(self) -> list[str]:
        try:
            path = os.readlink(f"/proc/{self._process.pid}/cwd")
        except OSError:
            return []
        # Below another root the link reads differently from what the process would call it. And
        # the line that names it has to be short.
        fits = path.startswith("/") and path.isascii() and len(path) <= _MAX_PLACE
        return [path] if fits and self._process.same_root else []

    def _open_private(self) -> int:
        folder = os.open(self._name, _FOLDER, dir_fd=self._place)
        status = os.fstat(folder)
        if status.st_uid != self._process.uids.effective or stat.S_IMODE(status.st_mode) & 0o077:
            os.close(folder)
            raise AttachError(f"somebody has replaced {self.folder}", "folder")
        return folder

    def _write(self, name: str, data: bytes) -> int:
        file = os.open(name, _NEW_FILE, 0o600, dir_fd=self._folder)
        try:
            os.write(file, data)
        except OSError:
            os.close(file)
            raise
        return file

    @contextlib.contextmanager
    def _as_its_user(self) -> Generator[None]:
        """Make files as the user of the process, on this thread: they can be no one else's then.

        Root may not even make one of its own in a container where it has no number.
        """
        user, group = self._process.uids.effective, self._process.gids.effective
        if user == os.geteuid():
            yield
            return
        libc = ctypes.CDLL(None)
        libc.setfsgid(group)
        libc.setfsuid(user)
        try:
            # Neither call says whether it worked; one that can't work tells the number in force.
            if libc.setfsuid(-1) != user:
                raise PermissionError(errno.EPERM, "it belongs to another user")
            yield
        finally:
            libc.setfsuid(os.geteuid())
            libc.setfsgid(os.getegid())


def _open_below(root: int, path: str) -> int:
    """Open the folder ``path`` below ``root`` without following a single link.

    Raises:
        OSError: it is not there, or on the way there is a link.
    """
    folder = os.dup(root)
    try:
        for part in filter(None, path.split("/")):
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
    except OSError:
        os.close(folder)
        raise
    return folder
