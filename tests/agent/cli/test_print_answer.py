"""Answers on a standard output of every kind."""

from __future__ import annotations

import io
import os
import sys

import pytest

from vramscope.cli.print_answer import print_answer
from vramscope.cli.problem import Problem


def test_what_the_terminal_does_not_have_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    print_answer("2 MiB in größe.py", 1)
    assert written.getvalue() == b"2 MiB in gr\\xf6\\xdfe.py\n"


def test_nobody_has_to_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        print_answer("lines", 1)
        print_answer("more lines", 1)  # nor does the end complain
    monkeypatch.setattr(sys, "stdout", None)
    print_answer("lines", 1)


def test_a_full_disk_is_the_commands_own_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(Problem, match="could not be written: No space left") as failure:
            print_answer("lines", 2)
    assert failure.value.exit_code == 2
