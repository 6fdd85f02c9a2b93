"""A snapshot alone: what it shows, and nothing that it cannot know."""

from __future__ import annotations

from tests.support.made_moments import MIB, block, entry, last_steps, memory, recorded, segment
from vramscope_analysis.diagnosis.snapshot_verdict import diagnose_snapshot, settings_of, tried
from vramscope_analysis.moments.recorded_memory import RecordedMemory


def kinds(made: RecordedMemory) -> list[str]:
    return [finding.kind for finding in diagnose_snapshot(made, trials=())]


def test_a_recorded_leak_and_a_recorded_job_in_pieces() -> None:
    assert kinds(last_steps()) == ["leak"]
    assert kinds(recorded("unet__default")) == ["fragmentation"]
    assert kinds(recorded("conv__default")) == []


def test_settings_are_tried_on_the_recording_itself() -> None:
    # The job was run under this setting as well: 860 MiB less.
    found = diagnose_snapshot(recorded("unet__default"))
    assert found[0].remedies[0].fix == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    assert found[0].remedies[0].predicted_bytes == 860 * MIB


def test_without_a_history_nothing_is_tried_and_nothing_is_said() -> None:
    only_end = memory((), [segment(0, [block(MIB, MIB), block(400 * MIB)])])
    assert tried(only_end) == ()
    assert diagnose_snapshot(only_end) == []


def test_settings_in_force_are_those_of_the_snapshot() -> None:
    assert settings_of(recorded("unet__split64")) == "max_split_size_mb:64"
    assert settings_of(recorded("unet__default")) == ""
    assert settings_of(memory((), [segment(0, [block(MIB, MIB)])])) is None
    both = {"expandable_segments": True, "max_split_size": 128 * MIB}
    clashing = memory((), [segment(0, [block(MIB, MIB)])], settings=both)
    (finding,) = diagnose_snapshot(clashing)
    assert (finding.subject, finding.severity) == ("allocator settings", "warning")
    odd = memory((), [segment(0, [block(MIB, MIB)])], settings={"max_split_size": "much"})
    assert settings_of(odd) is None


def test_blocks_that_waited_for_another_stream_at_the_peak() -> None:
    entries = [
        entry("segment_alloc", 0, 300 * MIB),
        entry("alloc", 0, 100 * MIB),
        entry("free_requested", 0, 100 * MIB),
        entry("alloc", 100 * MIB, 200 * MIB),
        entry("free_completed", 0, 100 * MIB),
    ]
    end = segment(0, [block(100 * MIB), block(200 * MIB, 200 * MIB)])
    (finding,) = diagnose_snapshot(memory(entries, [end]), trials=())
    assert (
        finding.summary == "100 MiB at the peak were free already, and waited for another stream."
    )
    assert (finding.kind, finding.subject) == ("retention", "cross-stream reuse")
