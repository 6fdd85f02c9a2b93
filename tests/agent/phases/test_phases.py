"""The phase of the process, as rows and events have it."""

from __future__ import annotations

import threading

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.modelled_peaks import MIB, ModelledPeaks
from tests.support.recording_outbox import RecordingOutbox
from vramscope.notices import Notices
from vramscope.peaks.phase_peaks import PhasePeaks
from vramscope.phases.phases import MAX_NAMES, Phases
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Event
from vramscope_protocol.series import FIRST_USER_PHASE, OTHER_PHASE


class Rig:
    """Phases with a clock that the test moves."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.outbox = RecordingOutbox()
        self.notices = Notices()
        self.phases = Phases(self.clock, self.outbox.put, self.notices)

    def events(self) -> list[Event]:
        self.phases.poll()
        return [each for each in self.outbox.messages if isinstance(each, Event)]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_nothing_is_known_before_the_first_step_and_then_it_trains(rig: Rig) -> None:
    assert rig.phases.code() == UNKNOWN
    rig.phases.step_ended(1)
    assert rig.phases.code() == 0


def test_the_innermost_phase_counts(rig: Rig) -> None:
    outer = rig.phases.begin("eval", "user")
    inner = rig.phases.begin("checkpoint", "user")
    assert rig.phases.code() == 2
    rig.phases.end(inner)
    assert rig.phases.code() == 1
    rig.phases.end(outer)
    rig.phases.end(outer)
    assert rig.phases.code() == UNKNOWN


def test_the_name_of_the_phase_is_that_of_the_innermost(rig: Rig) -> None:
    assert rig.phases.name() == ""
    outer = rig.phases.begin("eval", "user")
    inner = rig.phases.begin("metrics", "user")
    assert rig.phases.name() == "metrics"
    rig.phases.end(inner)
    assert rig.phases.name() == "eval"
    rig.phases.end(outer)
    assert rig.phases.name() == ""


def test_phases_need_not_end_in_order(rig: Rig) -> None:
    first, second = rig.phases.begin("eval", "user"), rig.phases.begin("a", "user")
    rig.phases.end(first)
    assert rig.phases.code() == second.code
    rig.phases.end(second)
    assert rig.phases.code() == UNKNOWN


def test_waiting_for_data_is_a_phase_of_training_only(rig: Rig) -> None:
    rig.phases.is_waiting_for_data = True
    assert rig.phases.code() == 3
    rig.phases.begin("eval", "loader")
    assert rig.phases.code() == 1


def test_a_stretch_becomes_an_event_with_the_step_it_began_after(rig: Rig) -> None:
    rig.phases.step_ended(40)
    start_ns = rig.clock.time_ns()
    stretch = rig.phases.begin("eval", "callback")
    rig.clock.advance(2.5)
    rig.phases.end(stretch)
    rig.clock.advance(1)
    (event,) = rig.events()
    assert (event.kind, event.step, event.time_ns) == ("phase", 40, start_ns)
    assert event.text == "eval, 2.5 s"
    assert event.data["end_ns"] == start_ns + 2_500_000_000
    assert event.data["end_step"] == 40


def test_a_long_wait_for_data_is_told_unless_it_lies_in_another_phase(rig: Rig) -> None:
    start_ns = rig.clock.time_ns()
    rig.clock.advance(3)
    rig.phases.waited_for_data(start_ns)
    rig.phases.begin("eval", "loader")
    rig.phases.waited_for_data(start_ns)
    rig.clock.advance(0.6)
    (event,) = rig.events()
    assert (event.data["phase"], event.data["code"]) == ("data_wait", 3)
    assert (event.data["start_ns"], event.data["count"]) == (start_ns, 1)


def test_closing_tells_what_lasts(rig: Rig) -> None:
    rig.phases.begin("eval", "user")
    rig.clock.advance(0.2)
    rig.phases.close()
    (event,) = rig.events()
    assert event.data["end_ns"] == rig.clock.time_ns()


def test_names_of_the_user_get_codes_of_their_own_up_to_a_bound(rig: Rig) -> None:
    codes = [rig.phases.begin(f"phase {number}", "user").code for number in range(MAX_NAMES + 2)]
    assert codes[:MAX_NAMES] == list(range(FIRST_USER_PHASE, FIRST_USER_PHASE + MAX_NAMES))
    assert codes[MAX_NAMES:] == [OTHER_PHASE] * 2
    assert rig.phases.begin("phase 3", "user").code == FIRST_USER_PHASE + 3
    assert rig.notices.texts() == [f"phase(): only the first {MAX_NAMES} names are kept"]


@pytest.mark.parametrize("name", ["", "x" * 61, "tab\there"])
def test_a_name_that_cannot_be_shown_is_other(rig: Rig, name: str) -> None:
    stretch = rig.phases.begin(name, "user")
    assert (stretch.name, stretch.code) == ("other", OTHER_PHASE)
    assert rig.notices.texts() == ["phase(): expected names of 1 to 60 printable characters"]


def test_only_what_somebody_says_keeps_others_from_guessing(rig: Rig) -> None:
    rig.phases.begin("eval", "loader")
    assert not rig.phases.is_told()
    rig.phases.begin("eval", "callback")
    assert rig.phases.is_told()


def test_many_threads_at_once_leave_nothing_behind(rig: Rig) -> None:
    def work(name: str) -> None:
        for _ in range(500):
            rig.phases.end(rig.phases.begin(name, "user"))

    threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        rig.phases.poll()
        rig.phases.code()
    assert rig.phases.code() == UNKNOWN
    rig.phases.close()
    told = sum(
        event.data["count"] + event.data["skipped"]
        for event in rig.events()
        if event.data["end_ns"] is not None
    )
    assert told <= 2000


# ----------------------------------------------------------------------------------- peaks


def with_peaks(rig: Rig) -> ModelledPeaks:
    modelled = ModelledPeaks()
    training = threading.get_ident()
    rig.phases.peaks = PhasePeaks(
        modelled.meter, lambda: threading.get_ident() == training, 0.001, modelled.charge
    )
    return modelled


def test_a_phase_tells_its_peak_when_it_is_over(rig: Rig) -> None:
    modelled = with_peaks(rig)
    stretch = rig.phases.begin("mine", "user")
    (begun,) = rig.events()
    assert (begun.data["peak_bytes"], begun.data["volume_bytes"]) == (None, None)
    modelled.peak(5)
    modelled.peak(3)
    rig.phases.end(stretch)
    rig.phases.end(stretch)
    rig.phases.close()
    ended = rig.events()[-1]
    assert (ended.data["peak_bytes"], ended.data["volume_bytes"]) == (5 * MIB, 8 * MIB)


def test_a_phase_that_began_before_it_was_seen_has_no_known_peak(rig: Rig) -> None:
    modelled = with_peaks(rig)
    stretch = rig.phases.begin("eval", "loader", start_ns=rig.clock.time_ns() - 10)
    modelled.peak(5)
    rig.phases.end(stretch)
    assert stretch.peak_bytes is None
    assert modelled.takes == 0


def test_a_phase_that_another_thread_ends_has_no_known_peak(rig: Rig) -> None:
    modelled = with_peaks(rig)
    stretch = rig.phases.begin("eval", "user")
    thread = threading.Thread(target=lambda: rig.phases.end(stretch))
    thread.start()
    thread.join(30)
    assert (stretch.peak_bytes, stretch.volume_bytes) == (None, None)
    assert modelled.takes == 1
