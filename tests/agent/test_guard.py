"""The guard swallows what is ours, and only that."""

from __future__ import annotations

import logging

import pytest

from vramscope import guard
from vramscope.guard import Attempt, guarded, guarded_call, guarded_row, summary


@pytest.mark.expects_guarded_errors
def test_an_exception_is_swallowed_counted_and_logged_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = guard.error_count()
    with guarded("place one"):
        raise ValueError("first line\nsecond line")
    assert guard.error_count() == before + 1
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.getMessage().startswith("vramscope: place one (ValueError: first line, no. 1)")
    assert "\n" not in record.getMessage()


@pytest.mark.expects_guarded_errors
def test_a_place_that_keeps_failing_is_logged_once_and_counted_always(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = guard.error_count()
    for _ in range(50):
        with guarded("place two"):
            raise ValueError
    with guarded("place three"):
        raise ValueError
    assert guard.error_count() == before + 51
    assert len(caplog.records) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_for_the_job_passes_through(error: type[BaseException]) -> None:
    with pytest.raises(error), guarded("place four"):
        raise error
    with pytest.raises(error), Attempt():
        raise error


@pytest.mark.expects_guarded_errors
def test_it_decorates_a_function() -> None:
    @guarded("place five")
    def fail() -> None:
        raise OSError("no")

    fail()


@pytest.mark.expects_guarded_errors
def test_a_log_handler_that_raises_does_not_reach_the_job() -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("handler of the job")

    handler = Broken()
    logger = logging.getLogger("vramscope")
    logger.addHandler(handler)
    try:
        with guarded("place six"):
            raise ValueError
    finally:
        logger.removeHandler(handler)


def test_an_attempt_keeps_the_error_without_its_frames_and_does_not_count_it() -> None:
    before = guard.error_count()
    with Attempt() as attempt:
        raise RuntimeError("out of memory")
    assert isinstance(attempt.error, RuntimeError)
    assert attempt.error.__traceback__ is None
    assert guard.error_count() == before


def test_a_summary_is_one_short_line() -> None:
    assert summary(ValueError()) == "ValueError"
    assert summary(ValueError("a\nb")) == "ValueError: a"
    assert len(summary(ValueError("x" * 5000))) < 400


@pytest.mark.expects_guarded_errors
def test_a_call_that_fails_has_the_answer_that_was_said() -> None:
    before = guard.error_count()
    assert guarded_call("place seven", int, None, "12") == 12
    assert guarded_call("place seven", int, None, "twelve") is None
    assert guard.error_count() == before + 1


@pytest.mark.expects_guarded_errors
def test_of_several_calls_one_that_fails_costs_its_own_numbers_only() -> None:
    def fail() -> list[int]:
        raise OSError("no")

    before = guard.error_count()
    row = guarded_row(
        "place eight",
        [(lambda: [1, 2], [-1, -1]), (fail, [-1]), (lambda: [3], [-1, -1]), (lambda: [4], [-1])],
    )
    assert row == [1, 2, -1, -1, -1, 4]
    assert guard.error_count() == before + 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_for_the_job_passes_through_calls_too(error: type[BaseException]) -> None:
    def fail() -> list[int]:
        raise error

    with pytest.raises(error):
        guarded_call("place nine", fail, None)
    with pytest.raises(error):
        guarded_row("place nine", [(fail, [0])])
