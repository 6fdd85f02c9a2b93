"""Record what the caching allocators of PyTorch releases do with random programs of calls.

    python -m benchmarks.real_allocator.record_releases [RELEASE ...] --work DIR [--out DIR]

Needs no CUDA device: see benchmarks/README.md. The same releases give the same files.
"""

from __future__ import annotations

import argparse
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.real_allocator.programs import Program, random_program
from benchmarks.real_allocator.releases import Release, Step

RELEASES = [
    *("2.4.1", "2.6.0", "2.8.0", "2.9.1", "2.10.0"),
    *("2.11.0", "2.12.0", "2.13.0", "2.14.0"),
]
OUT = Path(__file__).resolve().parents[2] / "tests" / "data" / "allocator_calls"

TRIED = 60  # programs of each theme
KEPT = {"settings": 3, "pools": 4, "streams": 3}
RUNS = 30


@dataclass(frozen=True)
class Outcome:
    """A program with what came of it, and what of note happened in it."""

    program: Program
    steps: list[Step]
    happened: frozenset[str]


def record(release: Release) -> list[Outcome]:
    """The programs that are kept of a release, theme by theme."""
    kept: list[Outcome] = []
    for theme, count in KEPT.items():
        programs = (random_program(theme, n, release.version) for n in range(TRIED))
        outcomes = [one for one in (outcome(release, it) for it in programs) if one]
        print(f"torch {release.name}, {theme}: {len(outcomes)} of {TRIED} run", flush=True)
        kept += most_varied(release, outcomes, count)
    return kept


def outcome(release: Release, program: Program) -> Outcome | None:
    """What comes of a program; None if a call is refused, or memory in use is given back."""
    steps = release.run(program)
    if steps is None or frees_part_of_a_segment(steps):
        return None
    return Outcome(program, steps, frozenset(happenings(steps)))


def frees_part_of_a_segment(steps: list[Step]) -> bool:
    """Whether the release gave memory back of which a part may be in use.

    Some do, after ``max_split_size_mb`` was lowered while blocks were split: a defect of theirs,
    and no device would be in a defined state from there on.
    """
    reserved_bytes: dict[int, int] = {}
    for event in (event for step in steps for event in step[1]):
        if event[0] == "reserve":
            reserved_bytes[event[1]] = event[2]
        elif event[0] == "segment_free" and reserved_bytes.get(event[1]) != event[2]:
            return True
    return False


def happenings(steps: list[Step]) -> set[str]:
    """Names of what a program brought about, as far as not every program does."""
    found: set[str] = set()
    scopes = 0
    for call, events, answer, *_look in steps:
        name = call.split()[0]
        scopes += (name == "begin") - (name == "end")
        actions = {event[0] for event in events}
        found |= actions
        if answer == "oom":
            found.add("out of memory" + " in a scope" * bool(scopes))
        if name == "m" and "free_completed" in actions:
            found.add("a free that waited")
        if name == "m" and not scopes and any(e[0] == "alloc" and any(e[4]) for e in events):
            found.add("another pool's memory" + " at last" * ("segment_free" in actions))
        if name == "m" and scopes > 1:
            found.add("an allocation in two scopes")
    counters: dict[str, Any] = steps[-2][3]
    return found | {name for name, value in counters.items() if value not in (0, [0, 0, 0, 0])}


def most_varied(release: Release, outcomes: list[Outcome], count: int) -> list[Outcome]:
    """The defined programs that together bring about the most, found greedily."""
    chosen: list[Outcome] = []
    covered: frozenset[str] = frozenset()
    rest = list(outcomes)
    while len(chosen) < count:
        best = max(rest, key=lambda one: (len(one.happened - covered), len(one.happened)))
        rest.remove(best)
        if is_defined(release, best):
            chosen.append(best)
            covered |= best.happened
    return chosen


def is_defined(release: Release, outcome: Outcome) -> bool:
    """Whether what the program does is the same in every process.

    Some orders in the allocator follow from where its own objects lie, which is elsewhere in each.
    Only what many processes agree on can be expected of anything else.
    """
    return all(release.run(outcome.program) == outcome.steps for _ in range(RUNS))


def write(name: str, outcomes: list[Outcome], folder: Path) -> None:
    """Write the file of a release; without a time in it, so that equal content is equal bytes."""
    scripts = [
        {
            "program": one.program.seed,
            "capacity_bytes": one.program.capacity_bytes,
            "steps": one.steps,
        }
        for one in outcomes
    ]
    text = json.dumps({"torch": name, "scripts": scripts}, separators=(",", ":"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"torch-{name}.json.gz"
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        file.write(text.encode())


def main() -> None:
    """Record the releases that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="default: all recorded")
    parser.add_argument("--work", type=Path, required=True, help="for wheels and builds")
    parser.add_argument("--out", type=Path, default=OUT, help="default: the tests' data")
    arguments = parser.parse_args()
    for name in arguments.releases or RELEASES:
        release = Release(name, arguments.work)
        release.build()
        write(name, record(release), arguments.out)


if __name__ == "__main__":
    main()
