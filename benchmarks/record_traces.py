"""Record allocator histories of real workloads, each with the allocator's own counters beside it.

    python -m benchmarks.record_traces --all --out DIR [--jobs N]
    python -m benchmarks.record_traces WORKLOAD [--conf CONF] [--limit-mib N] --out DIR

Every recording runs in a process of its own, since it begins with the allocator's first allocation
and the settings are read once. WORKLOAD is a module of benchmarks/workloads. Without a CUDA device
a workload runs on the CPU and records nothing. See benchmarks/README.md for the files.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

CONFS = {
    "default": "",
    "limited": "",
    "expandable": "expandable_segments:True",
    "expandable_limited": "expandable_segments:True",
    "expandable_pages64": "expandable_segments:True,large_segment_size_mb:64",
    "segments48": "large_segment_size_mb:48",
    "split64": "max_split_size_mb:64",
    "split64_rounding64": "max_split_size_mb:64,max_non_split_rounding_mb:64",
    "pow2_4": "roundup_power2_divisions:4",
    "gc60": "garbage_collection_threshold:0.6",
    "gc60_split64": "garbage_collection_threshold:0.6,max_split_size_mb:64",
    "combined": "expandable_segments:True,roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
}


@dataclass(frozen=True)
class Recording:
    """One workload under one configuration."""

    workload: str
    conf_name: str
    limit_mib: int | None = None

    @property
    def name(self) -> str:
        """Name of its two files, without their endings."""
        return f"{self.workload}__{self.conf_name}"

    def command(self, folder: Path, *, with_frames: bool) -> list[str]:
        """Command line of the process that makes it."""
        limit = [] if self.limit_mib is None else [f"--limit-mib={self.limit_mib}"]
        return [
            *(sys.executable, "-m", "benchmarks.record_traces", self.workload, f"--out={folder}"),
            *(f"--conf={CONFS[self.conf_name]}", f"--name={self.name}", *limit),
            *(["--frames"] if with_frames else []),
        ]


# Each rule of the allocator at least once; not every workload under every configuration.
RECORDINGS = (
    Recording("hf", "default"),
    Recording("hf", "expandable"),
    Recording("hf", "pow2_4"),
    Recording("lightning", "default"),
    Recording("lightning", "expandable"),
    Recording("unet", "default"),
    Recording("unet", "split64"),
    Recording("unet", "segments48"),
    Recording("unet", "gc60", limit_mib=2304),
    Recording("streams", "default"),
    Recording("streams", "expandable"),
    Recording("streams", "gc60", limit_mib=448),
    Recording("streams", "limited", limit_mib=280),
    Recording("streams", "expandable_limited", limit_mib=360),
    Recording("cuda_graphs", "default"),
    Recording("cuda_graphs", "expandable"),
    Recording("cuda_graphs", "combined"),
    Recording("pools", "default"),
    Recording("pools", "expandable"),
    Recording("pool_options", "default"),
    Recording("pool_options", "expandable"),
    Recording("checkpointing", "default"),
    Recording("checkpointing", "split64"),
    Recording("checkpointing", "combined"),
    Recording("checkpointing", "expandable_pages64"),
    Recording("oom_retry", "default", limit_mib=768),
    Recording("oom_retry", "expandable", limit_mib=768),
    Recording("oom_retry", "split64_rounding64", limit_mib=768),
    Recording("oom_retry", "gc60_split64", limit_mib=768),
    Recording("settings", "default"),
)


def record(workload: str, conf: str, name: str, limit_mib: int | None, arguments: Namespace) -> str:
    """Run one workload in this process; one line that says what came of it."""
    # Before torch is imported: the allocator reads it once.
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = conf
    os.environ["HF_HUB_OFFLINE"] = "1"
    module = importlib.import_module(f"benchmarks.workloads.{workload}")
    from benchmarks.trace_recorder import TraceRecorder

    recorder = TraceRecorder(with_frames=arguments.frames)
    if limit_mib is not None:
        recorder.set_limit(limit_mib << 20)
    alive = module.run(recorder)  # held until the snapshot is taken
    if not recorder.records:
        return f"{name}: no CUDA device, ran {recorder.steps} steps on the CPU, recorded nothing"
    entries = recorder.save(arguments.out, name, workload=workload, conf=conf)
    del alive
    packed_bytes = (arguments.out / f"{name}.pickle.gz").stat().st_size
    return f"{name}: {recorder.steps} steps, {entries} entries, {packed_bytes / 1024:.0f} KiB"


def record_all(arguments: Namespace) -> int:
    """Make every recording, several at a time; exit code 1 if one failed."""

    def run(recording: Recording) -> subprocess.CompletedProcess[str]:
        command = recording.command(arguments.out, with_frames=arguments.frames)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            print(done.stdout, end="", flush=True)
        else:
            print(f"{recording.name}: failed\n{done.stdout}{done.stderr[-2000:]}", flush=True)
        return done

    with ThreadPoolExecutor(arguments.jobs) as threads:
        done = list(threads.map(run, RECORDINGS))
    return int(any(process.returncode for process in done))


class Namespace(argparse.Namespace):
    """Arguments of the command line."""

    workload: str | None
    all: bool
    conf: str
    name: str | None
    limit_mib: int | None
    frames: bool
    jobs: int
    out: Path


def parse_arguments() -> Namespace:
    """Read the command line; exits with 2 on a bad one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("workload", nargs="?", help="module of benchmarks/workloads")
    parser.add_argument("--all", action="store_true", help="every recording of the plan")
    parser.add_argument("--conf", default="", help="as PYTORCH_CUDA_ALLOC_CONF takes it")
    parser.add_argument("--name", help="of the files (default: WORKLOAD__default)")
    parser.add_argument("--limit-mib", type=int, help="memory fraction, as a size in MiB")
    parser.add_argument("--frames", action="store_true", help="with the Python stack of each entry")
    parser.add_argument("--jobs", type=int, default=4, help="recordings at a time (default 4)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    arguments = parser.parse_args(namespace=Namespace())
    if arguments.all == (arguments.workload is not None):
        parser.error("expected either a WORKLOAD or --all")
    return arguments


def main() -> int:
    """Record what the command line asks for."""
    arguments = parse_arguments()
    if arguments.workload is None:
        return record_all(arguments)
    name = arguments.name or f"{arguments.workload}__default"
    print(record(arguments.workload, arguments.conf, name, arguments.limit_mib, arguments))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
