"""Runs a script or module in this process as ``python`` itself would.

Same ``sys.argv``, ``sys.path[0]``, ``__main__``, ``__file__``, tracebacks and exit codes. The
code runs in a new ``__main__`` module that stays: ``runpy`` would take it away again at the end,
under the feet of exit handlers, threads and pickles that refer to it.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import io
import os
import sys
from collections.abc import Callable
from types import CodeType, ModuleType, TracebackType
from typing import Any

from vramscope.console_script import ForeignScript, find_entry_point, find_script
from vramscope.startup.command_line import CommandLine

# The module that was __main__ until now: its functions are still on the stack.
_previous_main: list[ModuleType] = []


class LaunchError(Exception):
    """There is nothing to run; the message is one line for a person."""


class Program:
    """A script, module or command that can be run. Finding it imports at most parent packages.

    Args:
        name: file to run, or module with ``is_module``, or a command of this environment.
        arguments: what the program finds in ``sys.argv`` behind its own name.
        is_module: as with ``python -m``.
    """

    def __init__(self, name: str, arguments: list[str], *, is_module: bool = False) -> None:
        self.name = name
        self._arguments = arguments
        self._is_module = is_module
        self._source: str | None = None

    @property
    def display_name(self) -> str:
        """File name of the script, or name of the module."""
        return self.name if self._is_module else os.path.basename(self.name)

    @property
    def is_launcher(self) -> bool:
        """Whether it trains nothing itself and starts the processes that do."""
        return CommandLine("module" if self._is_module else "script", self.name).is_launcher

    def check(self) -> None:
        """Say early that there is nothing to run.

        Raises:
            LaunchError: no such script.
        """
        if self._is_module:
            return
        if not os.path.exists(self.name):
            self._find_command()
            return
        if os.path.isdir(self.name) and not os.path.exists(os.path.join(self.name, "__main__.py")):
            raise LaunchError(f"{self.name!r} is a folder without a __main__.py")

    def _find_command(self) -> None:
        try:
            path = find_script(self.name)
        except ForeignScript as error:
            self._source = find_entry_point(self.name)
            if self._source is None:
                raise LaunchError(str(error)) from None
            return
        if path is not None:
            self.name = path
            return
        self._source = find_entry_point(self.name) if self.name else None
        if self._source is None:
            raise LaunchError(
                f"no script at {self.name!r} and no command of that name: "
                "expected the path of a Python file to run"
            )

    def run(self, ended: Callable[[BaseException | None], None]) -> None:
        """Run to the end. What the program raises is raised, with a traceback free of our frames.

        Args:
            ended: called first of all with what the program raised.

        Raises:
            LaunchError: no such module.
        """
        if self._is_module:
            main, load = self._prepare_module()
        elif self._source is not None:
            main, load = self._prepare_command(self._source)
        else:
            main, load = self._prepare_script()
        _previous_main.append(sys.modules["__main__"])
        sys.modules["__main__"] = main
        code: CodeType | None = None
        try:
            code = load()
            exec(code, main.__dict__)
        except BaseException as error:
            # The first entry is this very frame; a syntax error has only frames of ours.
            trace = error.__traceback__ if code is not None else None
            _hide_our_frames(error, trace.tb_next if trace is not None else None)
            ended(error)
            raise
        ended(None)

    def _prepare_script(self) -> tuple[ModuleType, Callable[[], CodeType]]:
        path = os.path.join(_working_folder(), self.name)  # as python does: "./" and "../" stay
        sys.argv = [self.name, *self._arguments]
        is_source = path.endswith((".py", ".pyc"))
        if os.path.isdir(path) or (not is_source and _is_archive(path)):
            # A folder or archive is itself the place that its __main__ is imported from.
            _set_first_path(path)
            return self._module_from_spec("__main__", run_as=None)
        _set_first_path(os.path.dirname(os.path.realpath(path)))
        main = _new_main(path, None, None)
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
        return main, lambda: _compile(path)

    def _prepare_command(self, source: str) -> tuple[ModuleType, Callable[[], CodeType]]:
        path = os.path.join(os.path.dirname(sys.executable), self.name)
        sys.argv = [path, *self._arguments]
        _set_first_path(os.path.dirname(path))
        # No file: a child that imports the main script again would not find it.
        main = _new_main(None, None, None)
        del main.__file__
        return main, lambda: compile(source, path, "exec", dont_inherit=True)

    def _prepare_module(self) -> tuple[ModuleType, Callable[[], CodeType]]:
        sys.argv = ["-m", *self._arguments]
        _set_first_path(_working_folder())
        return self._module_from_spec(self.name, run_as=self.name)

    def _module_from_spec(
        self, name: str, run_as: str | None
    ) -> tuple[ModuleType, Callable[[], CodeType]]:
        spec = _find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = _find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        code = loader.get_code(name) if hasattr(loader, "get_code") else None
        if spec is None or code is None:
            raise LaunchError(f"no module named {self.name!r} that can be run")
        main = _new_main(spec.origin, spec, spec.parent)
        main.__loader__ = loader
        if run_as is not None:
            sys.argv[0] = spec.origin or self.name
        return main, lambda: code


def _working_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""  # gone; python runs what does not need it


def _find_spec(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        if name == "__main__":
            # Already in sys.modules as us: ask the finders themselves.
            return importlib.machinery.PathFinder.find_spec(name, sys.path[:1])
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _new_main(
    path: str | None, spec: importlib.machinery.ModuleSpec | None, package: str | None
) -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=path,
        __builtins__=builtins,
        __spec__=spec,
        __package__=package,
        __cached__=spec.cached if spec is not None else None,
    )
    if sys.version_info < (3, 14):  # from there on they are made when they are asked for
        vars(main)["__annotations__"] = {}
    return main


def _compile(path: str) -> CodeType:
    if path.endswith(".pyc"):
        code = importlib.machinery.SourcelessFileLoader("__main__", path).get_code("__main__")
        assert code is not None  # it raises for everything that is no code
        return code
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def _is_archive(path: str) -> bool:
    import zipfile

    return zipfile.is_zipfile(path)


def _set_first_path(entry: str) -> None:
    """Put ``entry`` where the interpreter put the place of our own command."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = entry


def _hide_our_frames(error: BaseException, trace: TracebackType | None) -> None:
    """Let the interpreter's last words on ``error`` start at the program's own frame.

    Only what it hands to ``sys.excepthook`` changes: what is raised, how the process ends and
    what a hook of the program does are the interpreter's business as ever.
    """
    hook = sys.excepthook

    def show(kind: type[BaseException], raised: BaseException, full: TracebackType | None) -> None:
        if raised is error:
            raised.__traceback__ = full = trace
        hook(kind, raised, full)

    sys.excepthook = show
