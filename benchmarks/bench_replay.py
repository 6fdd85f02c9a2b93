"""How fast a recorded job is replayed and predicted, and what it costs in memory.

A made-up training job of varying batch sizes, with a side stream, is recorded from the model; then
the whole recording, its first half and its first quarter are replayed in processes of their own.
Prints one line of JSON. ``slope`` is the time for twice the events, as a ratio: 2 is linear.
``grown_mib`` is what a process grew by with a quarter, half and all of the events.
Usage: ``bench_replay.py [--events N] [--layers N]``.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from array import array
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from vramscope_analysis.allocator import AllocatorSettings, Block, CachingAllocator
from vramscope_analysis.replay import Events, Recording, predict, replay_recorded
from vramscope_analysis.snapshot import Action

MIB: Final = 1 << 20
SIDE_STREAM: Final = 1 << 20
NUMBERS: Final = {action.word: int(action) for action in Action}
PREDICTED: Final = {
    "as recorded": AllocatorSettings(),
    "expandable": AllocatorSettings(expandable_segments=True),
    "divisions": AllocatorSettings(roundup_power2_divisions=(8,) * 16),
}
VERSION: Final = (2, 11)
PROCESS: Final = Path("/proc/self")
PARTS: Final = (1, 2, 4)
"""What is measured: the whole recording, half of it, a quarter."""


class Recorder:
    """The entries of a trace, column by column."""

    def __init__(self) -> None:
        self.actions = array("B")
        self.addresses = array("Q")
        self.sizes = array("q")
        self.streams = array("q")

    def note(
        self, action: str, address: int, size_bytes: int, stream: int, _pool_id: tuple[int, int]
    ) -> None:
        self.actions.append(NUMBERS[action])
        self.addresses.append(address)
        self.sizes.append(size_bytes)
        self.streams.append(stream)

    def columns(self) -> dict[str, Any]:
        return {
            "actions": np.array(self.actions),
            "addresses": np.array(self.addresses),
            "sizes": np.array(self.sizes),
            "streams": np.array(self.streams),
        }


class Job:
    """A training job as the allocator sees it: weights, activations, gradients, buckets.

    Args:
        recorder: where its entries go.
        layers: of the network; the number of live blocks grows with it.
    """

    def __init__(self, recorder: Recorder, layers: int) -> None:
        self.model = CachingAllocator(None, version=VERSION, on_event=recorder.note)
        self.random = random.Random(0)
        self.layers = layers
        self.waiting: deque[Block] = deque()
        self.most_live = 0
        for _ in range(3):  # weights and two moments
            for layer in range(layers):
                self.model.malloc(4096 * (1 + layer % 3))
                self.model.malloc((1 + layer % 5) * MIB)

    def step(self) -> None:
        """Forward, backward, and the exchange of gradients on a side stream."""
        tokens = self.random.randint(200, 2000)
        activations = [self.forward(layer, tokens) for layer in range(self.layers)]
        live = self.model.memory_stats()["allocation"]["all"]["current"]
        self.most_live = max(self.most_live, live)
        gradients: list[Block] = []
        for blocks in reversed(activations):
            gradients.append(self.backward(blocks, tokens))
            if len(gradients) == 8:
                self.exchange(gradients)
        self.exchange(gradients)

    def forward(self, layer: int, tokens: int) -> list[Block]:
        """One layer: two activations and a norm are kept, a scratch block is not."""
        scratch = self.model.malloc(tokens * (2048 + 512 * (layer % 4)))
        kept = [self.model.malloc(tokens * width) for width in (768, 3072)]
        kept.append(self.model.malloc(tokens * 4))
        self.model.free(scratch)
        return kept

    def backward(self, blocks: list[Block], tokens: int) -> Block:
        """One layer back: its activations go, one gradient comes."""
        scratch = self.model.malloc(tokens * 3072)
        for block in blocks:
            self.model.free(block)
        self.model.free(scratch)
        return self.model.malloc(self.random.choice([8192, MIB, 3 * MIB]))

    def exchange(self, gradients: list[Block]) -> None:
        """A bucket is used by the side stream too; the one before is done with by then."""
        bucket = self.model.malloc(4 * MIB, SIDE_STREAM)
        for block in (*gradients, bucket):
            self.model.record_stream(block, 0 if block is bucket else SIDE_STREAM)
            self.model.free(block)
            self.waiting.append(block)
        gradients.clear()
        while len(self.waiting) > 16:
            self.model.complete_free(self.waiting.popleft())


def record(folder: Path, events: int, layers: int) -> int:
    """Write the whole recording, its first half and its first quarter.

    Returns:
        The most blocks that were live at once.
    """
    recorder = Recorder()
    job = Job(recorder, layers)
    while len(recorder.actions) < events:
        job.step()
    columns = recorder.columns()
    for part in PARTS:
        count = events // part
        np.savez(
            file_of(folder, part), **{name: column[:count] for name, column in columns.items()}
        )
    return job.most_live


def file_of(folder: Path, part: int) -> Path:
    """The recording of 1/part of the events."""
    return folder / f"{part}.npz"


def load(path: Path) -> Recording:
    """A recording; what is held at its end it does not tell."""
    columns = dict(np.load(path))
    count = len(columns["actions"])
    return Recording(
        device=0,
        events=Events(
            actions=columns["actions"],
            addresses=columns["addresses"],
            sizes=columns["sizes"],
            streams=columns["streams"],
            times_us=np.arange(count, dtype=np.int64),
            pool_ids=None,
            stacks=np.full(count, -1, np.int32),
        ),
        segments=[],
        settings=AllocatorSettings(),
        recorded_settings={},
        annotations=[],
        versions=(VERSION, VERSION),
    )


def measure(path: Path, what: str) -> dict[str, float]:
    """Replay or predict in this process: seconds, and MiB by which the process grew."""
    recording = load(path)
    PROCESS.joinpath("clear_refs").write_text("5")  # the peak starts anew
    before_kib = peak_kib()
    began_s = time.perf_counter()
    if what == "replay":
        report = replay_recorded(recording)
        assert not report.segment_mismatches
        assert not report.block_mismatches
    else:
        predict(recording, PREDICTED[what])
    took_s = time.perf_counter() - began_s
    return {"s": took_s, "grown_mib": (peak_kib() - before_kib) / 1024}


def peak_kib() -> int:
    """Most memory that this process had since the peak was last reset (Linux)."""
    status = PROCESS.joinpath("status").read_text()
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0])


def measure_apart(path: Path, what: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    measured: dict[str, float] = json.loads(output)
    return measured


def summary(folder: Path, events: int, what: str) -> dict[str, Any]:
    """Speed with all events, and how time and memory grow from a quarter over half to all."""
    measured = [measure_apart(file_of(folder, part), what) for part in PARTS]
    whole, half, quarter = measured
    return {
        "events_per_s": round(events / whole["s"]),
        "slope": round((whole["s"] / quarter["s"]) ** 0.5, 2),
        "slopes": [round(half["s"] / quarter["s"], 2), round(whole["s"] / half["s"], 2)],
        "grown_mib": [round(one["grown_mib"], 1) for one in reversed(measured)],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--layers", type=int, default=400, help="more layers, more live blocks")
    parser.add_argument("--measure", choices=["replay", *PREDICTED], help=argparse.SUPPRESS)
    parser.add_argument("path", nargs="?", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(options.path, options.measure)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, events = Path(name), options.events
        most_live = record(folder, events, options.layers)
        result: dict[str, Any] = {"events": events, "most_live_blocks": most_live}
        result["replay"] = summary(folder, events, "replay")
        result["predict"] = {what: summary(folder, events, what) for what in PREDICTED}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
