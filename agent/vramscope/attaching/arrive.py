"""What runs first in the process: takes the request, finds vramscope and hands over to it.

The client puts a copy of this file into the folder of the request. It runs on a thread of its own
that ``_thread`` started; whatever ``threading.current_thread()`` were asked for there would leave
an entry behind, so all that is done on it is to start a proper one. Standard library only.

The folder is used by its descriptor throughout: once it is removed, another user may make one of
the same name.
"""

from __future__ import annotations

import os
import sys
import threading

# What the job may not have imported yet is not imported here: nothing holds its end back so far.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

_OURS = ("vramscope", "vramscope_protocol", "vramscope_analysis", "msgspec", "websockets", "pynvml")
_FORK_WAITS_S = 2.0
_END_WAITS_S = 5.0
_NO_THREAD = (
    '{"ok": false, "message": "it can start no further thread: a limit is reached (ulimit -u, or '
    'pids.max of its container), or it is about to end"}'
)


class FolderFinder:
    """Finds vramscope and what it needs in folders that are not on ``sys.path``, nothing else.

    Such a folder on ``sys.path`` could change what an ``import`` of the job finds.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where the module is, if it is ours and at the top level."""
        if path is not None or name not in _OURS:
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, self._folders, target)


def arrive(path: str, folder: int, is_without_thread: object = False) -> None:
    """Take the request in a folder, if there still is one, and carry it out on a thread.

    Args:
        path: of the folder.
        folder: its descriptor; the caller closes it.
        is_without_thread: whether none could be started, and this is the main one.
    """
    try:
        os.rename("request.json", "picked_up", src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        return  # given up meanwhile, or another arrival was quicker
    if is_without_thread:
        write(folder, "answer.json", _NO_THREAD)
        return
    own = os.dup(folder)
    settled = None
    try:
        settled = _delay_end()
        threading.Thread(
            target=carry_out, args=(path, own, settled), name="vramscope-arrival", daemon=True
        ).start()
    except RuntimeError:
        if settled is not None:
            settled()
        os.close(own)
        write(folder, "answer.json", _NO_THREAD)


def carry_out(path: str, folder: int, settled: Callable[[], None]) -> None:
    """Import vramscope, let it do what is asked for, write its answers, and close the folder.

    Args:
        path: of the folder.
        folder: its descriptor.
        settled: to be called when what must not be cut short by the end of the process is over.
    """
    try:
        if getattr(threading, "_SHUTTING_DOWN", False):
            return  # nothing waits for us any more
        if client_is_gone(folder):
            remove(path, folder)
            return
        done = _delay_forks()
        try:
            request: dict[str, Any] = json_of(folder, "picked_up")
            act, failure = _import_arrival(request.get("folders") or [])
        finally:
            done()

        def answer(values: dict[str, Any]) -> None:
            import json

            write(folder, "answer.json", json.dumps(values))
            settled()

        if act is None:
            answer(_without_vramscope(request, failure))
        else:
            act(request, answer)
        if client_is_gone(folder):
            remove(path, folder)
    except Exception:  # noqa: BLE001 - the job must not notice, and nobody else listens
        return
    finally:
        settled()
        os.close(folder)


def _import_arrival(folders: list[str]) -> tuple[Callable[..., None] | None, str]:
    """The function that acts, or why there is none."""
    finder = None
    failure = ""
    for _ in range(2):
        try:
            import vramscope.arrival
        except ImportError as error:
            failure = f"{type(error).__name__}: {error}"
            if finder is not None or not folders:
                break
            # It was installed after the process had started, or its folder is only in a .pth file.
            import importlib

            importlib.invalidate_caches()
            finder = FolderFinder(folders)
            sys.meta_path.append(finder)
        except Exception as error:  # noqa: BLE001 - it becomes the answer
            failure = f"{type(error).__name__}: {error}"
            break
        else:
            vramscope.arrival.found_by(finder)
            return vramscope.arrival.act, ""
    if finder is not None:
        sys.meta_path = [each for each in sys.meta_path if each is not finder]
    return None, failure


def _without_vramscope(request: dict[str, Any], failure: str) -> dict[str, Any]:
    if request.get("action") == "detach":
        return {"ok": True, "already": True, "message": "it was not attached"}
    return {"ok": False, "message": f"vramscope cannot be imported in the process: {failure}"}


def _delay_end() -> Callable[[], None]:
    """Have the end of the process wait until what was begun is settled, within a limit.

    Where Python ends, a thread that waits for the interpreter never gets it again. If it was
    importing, it has the lock that all imports take, and the end of the job, which imports as
    well, would never come. Python waits for every thread that is no daemon.
    """
    settled = threading.Event()
    threading.Thread(
        target=settled.wait, args=(_END_WAITS_S,), name="vramscope-arrival-end", daemon=False
    ).start()
    return settled.set


def _delay_forks() -> Callable[[], None]:
    """Have a fork of the job wait until what is imported here is imported, within a limit.

    A child that is forked in the middle inherits locks of modules whose owner is not there, and
    hangs when it imports one of those modules.
    """
    if "vramscope.arrival" in sys.modules:
        return lambda: None
    imported = threading.Event()
    own_thread = threading.get_ident()

    def wait() -> None:
        if threading.get_ident() != own_thread:
            imported.wait(_FORK_WAITS_S)

    os.register_at_fork(before=wait)
    return imported.set


def client_is_gone(folder: int) -> bool:
    """Whether the client has ended: while it lives it holds a lock."""
    import fcntl

    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        lock = os.open("client.lock", flags, dir_fd=folder)
    except OSError:
        return False  # it has cleaned up
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def json_of(folder: int, name: str) -> Any:
    """What a JSON file holds."""
    import json

    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(name, flags, dir_fd=folder), encoding="utf-8") as file:
        return json.load(file)


def write(folder: int, name: str, text: str) -> None:
    """Write a file that is there whole or not at all."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(f"{name}.new", flags, 0o600, dir_fd=folder)
    with open(file, "w", encoding="utf-8") as written:
        written.write(text)
    os.rename(f"{name}.new", name, src_dir_fd=folder, dst_dir_fd=folder)


def remove(path: str, folder: int) -> None:
    """Remove the folder of a request whose client cannot."""
    for name in os.listdir(folder):
        os.unlink(name, dir_fd=folder)
    os.rmdir(path)
