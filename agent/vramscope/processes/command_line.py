"""Command lines as they may be shown: up to the script, without what looks like a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 100
HIDDEN: Final = "…"

_PYTHON: Final = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)*t?)?$")
# Short options may be written together, and the last one's value behind it: -um pkg, -Xdev.
_OPTION: Final = re.compile(
    r"-(?P<flags>[A-Za-z?]*?)(?:(?P<last>[mcWX])(?P<value>.*))?$", re.DOTALL
)
_LONG_OPTION_WITH_VALUE: Final = "--check-hash-based-pycs"
# Programs that run a script of the user: what they run says more than they do.
_FRONT_ENDS: Final = frozenset(
    {
        "accelerate",
        "accelerate.commands.launch",
        "deepspeed",
        "deepspeed.launcher.launch",
        "deepspeed.launcher.runner",
        "torch.distributed.launch",
        "torch.distributed.run",
        "torchrun",
        "vramscope",
    }
)
_SECRET_NAME: Final = re.compile(
    r"(?i)token|secret|passw|api[-_]?key|access[-_]?key|credential|authorization"
)
_USER_IN_URL: Final = re.compile(r"://[^/@\s]+@")
_RANDOM: Final = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_+=-]{20,}$")


def split_command_line(raw: bytes) -> tuple[str, ...]:
    """The words of ``/proc/PID/cmdline``; what is no text is kept as surrogates."""
    return tuple(os.fsdecode(word) for word in raw.removesuffix(b"\0").split(b"\0") if raw)


def is_python_name(name: str) -> bool:
    """Whether a program's file name is that of an interpreter, such as ``python3.12``."""
    return _PYTHON.match(os.path.basename(name)) is not None


class Program(NamedTuple):
    """What a command line runs.

    ``name`` is a script's path, a module's name with ``is_module``, "-c" for code, "" for none
    (a prompt, or standard input). ``arguments`` are the words behind it.
    """

    name: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False


def program_of(argv: Sequence[str]) -> Program:
    """What a Python command line runs. Any other command line is its own program."""
    if not argv:
        return Program("")
    if not is_python_name(argv[0]):
        return Program(argv[0], tuple(argv[1:]))
    at = 1
    while at < len(argv):
        word = argv[at]
        at += 1
        if not word.startswith("-"):
            return Program(word, tuple(argv[at:]))
        option = _OPTION.match(word)
        if word == "-" or (option is None and not word.startswith("--")):
            break
        last, value = (option["last"], option["value"]) if option is not None else (None, None)
        takes_next = word == _LONG_OPTION_WITH_VALUE or (last is not None and not value)
        if takes_next:
            value = argv[at] if at < len(argv) else ""
            at += 1
        if last == "m" and value:
            return Program(value, tuple(argv[at:]), is_module=True)
        if last == "c":
            return Program("-c", tuple(argv[at:]))
    return Program("")


def shown_command(argv: Sequence[str]) -> str:
    """A command line in at most 100 printable characters, its arguments left out."""
    if not argv:
        return ""
    if len(argv) == 1 and " " in argv[0]:  # the process has given itself a title
        return _printable(" ".join(hide_secrets(argv[0].split())))
    words = [os.path.basename(argv[0].removeprefix("-"))]
    program = program_of(argv)
    if is_python_name(argv[0]) and program.name:
        words += ["-m"] * program.is_module
        words += ["-c", HIDDEN] if program.name == "-c" else [program.name]
    if front_end_of(program.name) is not None:
        words += _shown_target(program.arguments)
    return _printable(" ".join(hide_secrets(words)))


def name_of(argv: Sequence[str]) -> str:
    """What a command line runs, as a person calls it: a file's or a module's name; "" if none.

    Of a program that runs a script of the user, such as ``vramscope run``, it is that script.
    """
    program = program_of(argv)
    shown = _shown_target(program.arguments) if front_end_of(program.name) else []
    is_target = shown[-1:] != [] and (shown[-1].endswith(".py") or "-m" in shown)
    return os.path.basename(shown[-1] if is_target else program.name)


def front_end_of(program: str) -> str | None:
    """The name under which a program that runs a script of the user is known, or ``None``."""
    name = os.path.basename(program)
    return name if name in _FRONT_ENDS else None


def hide_secrets(words: Sequence[str]) -> list[str]:
    """The words with the values of tokens, passwords and the like replaced."""
    shown: list[str] = []
    is_value = False
    for word in words:
        name, separator, _ = word.partition("=")
        if is_value and not word.startswith("-"):
            shown.append(HIDDEN)
        elif separator and _SECRET_NAME.search(name):
            shown.append(f"{name}={HIDDEN}")
        elif _RANDOM.match(word):
            shown.append(HIDDEN)
        else:
            shown.append(_USER_IN_URL.sub(f"://{HIDDEN}@", word))
        is_value = not separator and word.startswith("-") and bool(_SECRET_NAME.search(word))
    return shown


def _shown_target(rest: Sequence[str]) -> list[str]:
    """The subcommand, and the script or module that a front end runs; no options."""
    shown = [word for word in rest[:1] if word.isalpha()]
    for at, word in enumerate(rest):
        if word == "-m" and at + 1 < len(rest):
            return [*shown, *[HIDDEN][: at - len(shown)], "-m", rest[at + 1]]
        if word.endswith(".py") and not word.startswith("-"):
            return [*shown, *[HIDDEN][: at - len(shown)], word]
    return shown


def _printable(text: str) -> str:
    clean = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    if len(clean) <= MAX_CHARACTERS:
        return clean
    # The end names the script; the beginning tells what kind of process it is.
    head = clean[:20]
    return f"{head}{HIDDEN}{clean[len(head) + 1 - MAX_CHARACTERS :]}"
