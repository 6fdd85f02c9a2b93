from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vramscope.cli import main

TRACES = Path(__file__).parents[2] / "data" / "traces"
JOB = str(TRACES / "lightning__default.pickle.gz")
OOM_JOB = str(TRACES / "oom_retry__default.pickle.gz")
LONG_JOB = str(TRACES / "varlen__default.pickle.gz")
MIB = 1 << 20

PROMISED = {
    "events": int,
    "settings": dict,
    "recorded_peak_reserved_bytes": int,
    "predicted_peak_reserved_bytes": int,
    "predicted_peak_allocated_bytes": int,
    "segment_events": int,
    "segment_mismatches": int,
    "oom": bool,
}
"""Keys that scripts of others rely on."""


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What ``--json`` prints."""
    assert main(["replay", *words, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.count("\n") == 1
    found: dict[str, Any] = json.loads(captured.out)
    return found


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a person reads."""
    assert main(["replay", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The line of a refusal."""
    assert main(["replay", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("vramscope: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("vramscope: ").rstrip("\n")


def vramscope(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """The same command as a process of its own."""
    command = [sys.executable, "-m", "vramscope", "replay", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, **options)


def pieces(screen: int) -> Iterator[str]:
    """Everything on a terminal that its processes have left."""
    while True:
        try:
            yield os.read(screen, 1 << 16).decode()
        except OSError:  # how Linux says that the other end is closed and all is read
            return


def snapshot_file(folder: Path, **changes: Any) -> str:
    """A snapshot of a process that did nothing."""
    plain = {"segments": [], "device_traces": [], "allocator_settings": {}, **changes}
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(plain, protocol=4))
    return str(path)


# --------------------------------------------------------------------------------------- answers


def test_a_recorded_job_is_replayed_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, JOB)
    assert {name: type(found[name]) for name in PROMISED} == PROMISED
    assert found["segment_mismatches"] == found["block_mismatches"] == 0
    assert found["is_exact"]
    assert found["first_mismatches"] == []
    assert found["recorded_peak_reserved_bytes"] == 546 * MIB
    assert found["predicted_peak_reserved_bytes"] == 546 * MIB
    assert found["settings"] == found["recorded_settings"]
    assert not found["oom"]
    unknown = ("inferred", "capacity_bytes", "limit_bytes", "out_of_memory", "advice", "advised")
    assert {name: found[name] for name in unknown} == dict.fromkeys(unknown)


def test_other_settings_predict_what_was_really_recorded_under_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = answer(capsys, JOB, "--set", "expandable_segments=True")
    assert found["changed_settings"] == {"expandable_segments": "True"}
    assert found["settings"]["expandable_segments"] is True
    assert found["recorded_settings"]["expandable_segments"] is False
    assert found["recorded_peak_reserved_bytes"] == 546 * MIB
    assert found["predicted_peak_reserved_bytes"] == 276 * MIB
    # How far to trust it: the recorded settings were replayed as well.
    assert found["segment_mismatches"] == 0


def test_a_person_reads_it_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, JOB, "--set", "expandable_segments=True").splitlines()
    words = dict(line.split("  ", 1) for line in lines)
    assert words["recording"].strip().startswith(f"{JOB}: device 0, 10,241 events")
    assert words["beginning"].strip() == "complete: it starts with the first allocation"
    assert words["replay"].strip().startswith("exact: all ")
    assert words["what if"].strip() == "expandable_segments:True"
    assert words["peak reserved"].strip() == "276 MiB predicted, 546 MiB recorded, -49.5 %"
    assert words["out of memory"].strip() == "no"


def test_a_smaller_device_runs_out_of_memory_and_says_where(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = answer(capsys, JOB, "--capacity", "200MiB")
    assert found["oom"]
    assert found["capacity_bytes"] == 200 * MIB
    assert found["predicted_peak_reserved_bytes"] <= 200 * MIB
    failure = found["out_of_memory"]
    assert failure["allowed_bytes"] == 200 * MIB
    assert failure["reserved_bytes"] + failure["segment_bytes"] > 200 * MIB
    assert failure["needed_bytes"] > 200 * MIB
    text = told(capsys, JOB, "--capacity", "200MiB")
    assert f"(event {failure['event']:,})" in text
    assert "of 200 MiB reserved" in text
    assert not answer(capsys, JOB, "--capacity", "600MiB")["oom"]


def test_a_fraction_is_one_of_the_capacity(capsys: pytest.CaptureFixture[str]) -> None:
    half = ("--set", "per_process_memory_fraction=0.5")
    found = answer(capsys, JOB, "--capacity", "400MiB", *half)
    assert (found["limit_bytes"], found["oom"]) == (200 * MIB, True)
    whole = ("--set", "per_process_memory_fraction=1.0")
    assert not answer(capsys, JOB, "--capacity", "600MiB", *whole)["oom"]


def test_a_recorded_failure_is_found_again(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, OOM_JOB)
    assert found["recorded_ooms"] > 0
    assert found["oom"]
    assert found["segment_mismatches"] == 0


def test_advice_comes_best_first(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, JOB, "--advise")
    assert found["advised"] == "expandable_segments:True"
    best, *others = found["advice"]
    assert best["settings_text"] == found["advised"]
    assert best["gain_bytes"] == (546 - 276) * MIB
    assert best["predicted_peak_reserved_bytes"] == 276 * MIB
    peaks = [each["predicted_peak_reserved_bytes"] for each in others]
    assert min(peaks) >= 276 * MIB
    assert [each["is_recorded"] for each in found["advice"]].count(True) == 1
    wasting = next(e for e in others if e["settings_text"] == "roundup_power2_divisions:2")
    assert any("rounding wastes" in cost for cost in wasting["costs"])

    text = told(capsys, JOB, "--advise")
    assert "\nAdvice: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n" in text
    table = text.split("\n\n")[-1].splitlines()
    assert [line.split()[0] for line in table[:2]] == ["SETTINGS", "expandable_segments:True"]
    assert len(table) == 1 + len(found["advice"])


def test_a_recording_without_its_beginning_says_what_was_inferred(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = pickle.loads(gzip.decompress(Path(JOB).read_bytes()))
    whole = plain["device_traces"][0]
    cut = snapshot_file(tmp_path, **{**plain, "device_traces": [whole[len(whole) // 2 :]]})
    found = answer(capsys, cut)
    assert not found["is_complete"]
    assert found["events"] == len(whole) - len(whole) // 2
    assert found["inferred"]["recorded_blocks"] > 0
    assert found["segment_mismatches"] == 0
    assert "\nbeginning      missing (recorded late, or the ring wrapped): " in told(capsys, cut)


@pytest.mark.parametrize("name", ["2.10", "2.11", "2.11.0+cu130"])
def test_a_torch_release_can_be_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, JOB, "--torch", name)
    assert found["torch_version"] == ".".join(name.split(".")[:2])
    assert not found["torch_version_is_guessed"]


def test_a_snapshot_may_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = Path(JOB).read_bytes()
    from_file = answer(capsys, JOB)
    for data in (packed, gzip.decompress(packed)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert answer(capsys, "-") == {**from_file, "source": "-"}


# -------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the following arguments are required: SNAPSHOT"),
        ((JOB, "--set", "max_split_size"), "--set: expected KEY=VALUE, got 'max_split_size'"),
        (
            (JOB, "--set", "expandable_segment=True"),
            "--set: no setting 'expandable_segment'; did you mean expandable_segments?",
        ),
        (
            (JOB, "--torch", "2.10", "--set", "large_segment_size_mb=64"),
            "--set large_segment_size_mb: expected an option of torch 2.10",
        ),
        ((JOB, "--set", "max_split_size_mb=lots"), "--set max_split_size_mb: expected "),
        (
            (JOB, "--set", "per_process_memory_fraction=0.5"),
            "--set per_process_memory_fraction: expected --capacity too, got none",
        ),
        ((JOB, "--capacity", "much"), "--capacity: expected a size such as 8GiB or 512MB"),
        ((JOB, "--capacity", "0"), "--capacity: expected a size above 0, got '0'"),
        ((JOB, "--torch", "2.3"), "--torch: expected a release from 2.4 to 2.14, got '2.3'"),
        ((JOB, "--torch", "new"), "--torch: expected a release from 2.4 to 2.14, got 'new'"),
        (
            (JOB, "--device", "3"),
            "--device: expected one with recorded events (0), got 3",
        ),
        ((JOB, "--device", "-1"), "--device: expected one with recorded events (0), got -1"),
        (("no/such.pickle",), "no/such.pickle: expected a snapshot file, got: No such file"),
        ((str(TRACES),), f"{TRACES}: expected a snapshot file, got a directory"),
        ((__file__,), f"{__file__}: expected "),
    ],
)
def test_bad_input_is_one_line(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint(capsys, *words).startswith(message)


def test_a_truncated_snapshot_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Path(JOB).read_bytes()
    for data in (b"", whole[: len(whole) // 2], gzip.decompress(whole)[:-100]):
        path = tmp_path / "cut.pickle"
        path.write_bytes(data)
        assert complaint(capsys, str(path)).startswith(f"{path}: ")


def test_a_snapshot_that_would_run_code_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps({"segments": Evil(), "device_traces": []}))
    assert complaint(capsys, str(path)).startswith(f"{path}: ")
    assert not (tmp_path / "made").exists()


def test_without_events_it_says_how_to_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty: list[list[list[Any]]] = [[], [[]], [[], []]]
    for traces in empty:
        line = complaint(capsys, snapshot_file(tmp_path, device_traces=traces))
        assert "snapshot.pickle: expected recorded events, got a snapshot without any" in line
        assert "torch.cuda.memory._record_memory_history(max_entries=" in line


def test_settings_that_pytorch_never_writes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [[{"action": "alloc", "addr": 512, "size": 512, "stream": 0, "time_us": 1}]]
    settings = {"max_split_size": "all"}
    path = snapshot_file(tmp_path, device_traces=traces, allocator_settings=settings)
    assert complaint(capsys, path).startswith(f"{path}: allocator_settings: expected a number")


def test_without_numpy_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert complaint(capsys, JOB) == (
        "replay needs numpy, which is not here; pip install 'vramscope[server]'"
    )


def test_a_terminal_is_no_snapshot() -> None:
    screen, terminal = pty.openpty()
    process = vramscope("-", stdin=terminal, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    os.close(screen)
    os.close(terminal)
    assert process.returncode == 2
    assert out == b""
    assert err == b"vramscope: expected a snapshot on standard input, got a terminal\n"


# ------------------------------------------------------------------------------ a real process


def test_a_terminal_shows_progress_and_is_clean_at_the_end() -> None:
    screen, terminal = pty.openpty()
    process = vramscope(LONG_JOB, "--advise", "--json", stderr=terminal)
    os.close(terminal)
    out, _ = process.communicate(timeout=110)
    shown = "".join(pieces(screen))
    os.close(screen)
    assert process.returncode == 0
    assert json.loads(out)["advised"] == "expandable_segments:True"
    drawings = shown.split("\r")
    assert any(drawing.startswith("trying settings [") for drawing in drawings)
    assert drawings[-1] == ""
    assert drawings[-2].strip() == ""
    assert len(drawings[-2]) == len(drawings[-3])


def test_nothing_but_the_answer_is_written_without_a_terminal() -> None:
    process = vramscope(JOB, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith(b"recording ")
    assert err == b""


def test_an_answer_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "vramscope", "replay", JOB]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
    line = b"vramscope: the answer could not be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, line)


def test_closed_streams_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(sys, stream, None)
    assert main(["replay", JOB]) == 0
    assert main(["replay", "-"]) == 2


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_nobody_reading_is_no_error(unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    process = vramscope(JOB, "--advise", stderr=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


def test_a_path_that_the_terminal_cannot_show_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"f\xfc\xe9.pickle.gz")
    path.write_bytes(Path(JOB).read_bytes())
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = vramscope(str(path), stderr=subprocess.PIPE, env=environment)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert b"pickle.gz: device 0" in out


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("so"), 2, f"{JOB}: the recording contradicts itself: so"),
    ],
)
def test_what_stops_a_replay_is_one_line(
    error: BaseException,
    code: int,
    line: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(*_arguments: Any, **_options: Any) -> None:
        raise error

    monkeypatch.setattr("vramscope_analysis.replay.predict", stopped)
    assert main(["replay", JOB]) == code
    assert capsys.readouterr() == ("", f"vramscope: {line}\n")
