"""What kind of program a Python process runs, from its command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

Kind = Literal["script", "module", "command", "input"]

LAUNCHER_MODULES: Final = frozenset(
    {
        "torch.distributed.run",
        "torch.distributed.launch",
        "torch.distributed.elastic",
        "accelerate",
        "accelerate.commands.launch",
        "accelerate.commands.accelerate_cli",
        "deepspeed",
        "deepspeed.launcher.runner",
        "deepspeed.launcher.launch",
        "ray",
        "ray.scripts.scripts",
    }
)
"""Modules that start other processes and train nothing themselves."""
LAUNCHER_SCRIPTS: Final = frozenset(
    {"torchrun", "accelerate", "accelerate-launch", "deepspeed", "ds", "ray", "horovodrun"}
)
"""Names of their scripts."""

_TOOLS: Final = frozenset(
    {
        *("vramscope", "pip", "pipx", "uv", "conda", "venv", "ensurepip", "virtualenv", "build"),
        *("pytest", "coverage", "tox", "nox", "mypy", "pyright", "ruff", "black", "pre_commit"),
        *("jupyter", "jupyter_lab", "notebook", "tensorboard", "compileall", "pydoc", "timeit"),
    }
)
# PyTorch's compiler starts processes that compile, and they import torch.
_HELPER_SCRIPTS: Final = ("torch/_inductor/compile_worker/__main__.py",)
_HELPER_MODULES: Final = ("torch._inductor.compile_worker", "torch.utils.collect_env")
_OPTIONS_WITH_VALUE: Final = frozenset({"-W", "-X", "--check-hash-based-pycs"})


class CommandLine(NamedTuple):
    """A Python command line: what is run, and in which way it was named."""

    kind: Kind
    name: str
    """Path, name of the module, or code of ``-c``; empty for what is typed or piped in."""

    @property
    def base(self) -> str:
        """The program's name without folders and ending, or the module's first part."""
        if self.kind == "module":
            return self.name.partition(".")[0]
        return os.path.splitext(os.path.basename(self.name))[0]

    @property
    def is_launcher(self) -> bool:
        """Whether it starts the processes that train."""
        if self.kind == "module":
            return self.name.removesuffix(".__main__") in LAUNCHER_MODULES
        if self.kind != "script":
            return False
        path = self.name.replace(os.sep, "/").removesuffix(".py").removesuffix("/__main__")
        module = path.replace("/", ".")
        return os.path.basename(self.name) in LAUNCHER_SCRIPTS or any(
            module.endswith(f".{name}") for name in LAUNCHER_MODULES if "." in name
        )

    @property
    def is_tool(self) -> bool:
        """Whether it is known to train nothing."""
        if self.kind == "script":
            path = self.name.replace(os.sep, "/")
            return path.endswith(_HELPER_SCRIPTS) or self.base in _TOOLS
        return self.kind == "module" and (
            self.name.startswith(_HELPER_MODULES) or self.base in _TOOLS
        )

    @property
    def is_worker(self) -> bool:
        """Whether another program started it to work for it: a child of multiprocessing, of Ray."""
        if self.kind == "command":
            return "multiprocessing" in self.name
        return self.kind == "script" and self.base == "default_worker"


def read_command_line(arguments: Sequence[str]) -> CommandLine:
    """Tell the program from the interpreter's own options.

    Args:
        arguments: as in ``sys.orig_argv``, the interpreter first.
    """
    at = 1
    while at < len(arguments):
        word = arguments[at]
        if word in _OPTIONS_WITH_VALUE:
            at += 2
        elif word == "-":
            break
        elif word.startswith("--"):
            at += 1
        elif word.startswith("-"):
            # Options of one letter may be written together, with the last one's value behind it.
            for kind, letter in (("module", "m"), ("command", "c")):
                _, found, attached = word.partition(letter)
                if found and word[1:2] not in ("W", "X"):
                    value = attached or "".join(arguments[at + 1 : at + 2])
                    return CommandLine("module" if kind == "module" else "command", value)
            at += 1
        else:
            return CommandLine("script", word)
    return CommandLine("input", "")
