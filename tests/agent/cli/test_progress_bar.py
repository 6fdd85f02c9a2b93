from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator
from fcntl import ioctl
from struct import pack
from termios import TIOCSWINSZ

import pytest

from vramscope.cli.progress_bar import DELAY_S, INTERVAL_S, ProgressBar


class Clock:
    """Stands still until the test moves it."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Terminal:
    """A stream to a pseudo-terminal, and what a person sees on it."""

    def __init__(self, columns: int = 60) -> None:
        self._screen, self._terminal = pty.openpty()
        ioctl(self._terminal, TIOCSWINSZ, pack("HHHH", 24, columns, 0, 0))
        self.stream = open(os.dup(self._terminal), "w", encoding="ascii")  # noqa: SIM115

    def shown(self) -> str:
        """What was drawn since the last time."""
        # The kernel hands it over when it likes, but in order: read up to a mark.
        os.write(self._terminal, b"\0")
        text = b""
        while not text.endswith(b"\0"):
            text += os.read(self._screen, 65536)
        return text[:-1].decode()

    def close(self) -> None:
        if not self.stream.closed:
            self.stream.close()
        os.close(self._terminal)
        os.close(self._screen)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


def test_it_shows_how_much_is_done_and_how_long_the_rest_takes(
    clock: Clock, terminal: Terminal
) -> None:
    advance = ProgressBar(terminal.stream, clock=clock).stage("replaying")
    clock.now_s += 30
    advance(1, 4)
    # 59 of 60 columns: a terminal wraps when its last one is written.
    assert terminal.shown() == f"\rreplaying [{'#' * 7}{'.' * 23}]  25 %  1:30 left"


def test_it_is_gone_at_the_end_also_when_the_work_fails(clock: Clock, terminal: Terminal) -> None:
    def work() -> None:
        with ProgressBar(terminal.stream, clock=clock) as bar:
            advance = bar.stage("reading")
            clock.now_s += 1
            advance(1, 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    _, drawn, blank, end = terminal.shown().split("\r")
    assert drawn.startswith("reading [")
    assert (blank, end) == (" " * len(drawn), "")


def test_a_shorter_line_leaves_nothing_of_the_longer_one(clock: Clock, terminal: Terminal) -> None:
    bar = ProgressBar(terminal.stream, clock=clock)
    clock.now_s += 1
    bar.stage("a long name of a stage")(0, 0)
    longer = len(terminal.shown())
    clock.now_s += 1
    bar.stage("short")(0, 0)
    assert len(terminal.shown()) == longer


def test_what_is_quick_shows_nothing(clock: Clock, terminal: Terminal) -> None:
    with ProgressBar(terminal.stream, clock=clock) as bar:
        advance = bar.stage("reading")
        advance(1, 2)
        clock.now_s += DELAY_S / 2
        advance(2, 2)
    assert terminal.shown() == ""


def test_it_is_drawn_ten_times_a_second_however_often_the_work_calls(
    clock: Clock, terminal: Terminal
) -> None:
    bar = ProgressBar(terminal.stream, clock=clock)
    clock.now_s += DELAY_S
    advance = bar.stage("replaying")
    for done in range(1000):
        advance(done, 1000)
        clock.now_s += 0.001
    assert terminal.shown().count("\r") == pytest.approx(1 / INTERVAL_S, abs=1)


@pytest.mark.parametrize("columns", [1, 12, 20, 34, 35, 60, 200])
def test_it_is_never_wider_than_the_terminal(clock: Clock, columns: int) -> None:
    terminal = Terminal(columns)
    bar = ProgressBar(terminal.stream, clock=clock)
    advance = bar.stage("replaying")
    clock.now_s += 3000
    advance(1, 300)
    assert len(terminal.shown().lstrip("\r")) < max(columns, 1)
    terminal.close()


def test_a_terminal_that_does_not_know_its_width_gets_80_columns(clock: Clock) -> None:
    terminal = Terminal(0)
    advance = ProgressBar(terminal.stream, clock=clock).stage("replaying")
    clock.now_s += 1
    advance(1, 2)
    line = terminal.shown()
    assert line.endswith("]  50 %  0:01 left")
    assert 60 < len(line) < 80
    terminal.close()


def test_nothing_is_drawn_where_there_is_no_terminal(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", None)
    for stream in (file, closed, None):
        with ProgressBar(stream, clock=clock) as bar:
            clock.now_s += 10
            bar.stage("reading")(1, 2)
    assert file.getvalue() == ""


def test_the_work_goes_on_when_the_terminal_goes_away(clock: Clock, terminal: Terminal) -> None:
    with ProgressBar(terminal.stream, clock=clock) as bar:
        advance = bar.stage("reading")
        clock.now_s += 1
        advance(1, 4)
        terminal.stream.close()
        clock.now_s += 1
        advance(2, 4)
        clock.now_s += 1
        advance(3, 4)
