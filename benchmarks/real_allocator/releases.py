"""The allocator of a PyTorch release, built to run without a device.

Of a release's wheel only the headers, libc10 and libc10_cuda are unpacked. They are linked with
the stand-in under the names of the CUDA libraries that they ask for.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.real_allocator.programs import Program, Version

SOURCES = Path(__file__).parent
TIMEOUT_S = 60

# The allocator's own sources use little of CUDA's headers: these serve every release.
CUDA_HEADERS = {
    "nvidia-cuda-runtime-cu12==12.4.127": "nvidia/cuda_runtime/include/",
    "nvidia-cuda-nvcc-cu12==12.4.131": "nvidia/cuda_nvcc/include/",
}
TORCH_PARTS = (
    "torch/include/c10/",
    "torch/include/torch/headeronly/",
    "torch/lib/libc10.so",
    "torch/lib/libc10_cuda.so",
)

Step = list[Any]


class Release:
    """One release, unpacked and built in a folder of its own.

    Args:
        name: as in ``2.13.0``.
        work: folder for what is downloaded, unpacked and built; what is there is not made again.
    """

    def __init__(self, name: str, work: Path) -> None:
        major, minor, _patch = name.split(".")
        self.version: Version = int(major), int(minor)
        self.name = name
        self.work = work.resolve()
        self.build_folder = self.work / f"build-{name}"

    def build(self) -> None:
        """Get what is missing and build; raises what the compiler or pip fails with."""
        self.build_folder.mkdir(parents=True, exist_ok=True)
        torch = unpack(f"torch=={self.name}", TORCH_PARTS, self.work) / "torch"
        cuda = [unpack(name, (part,), self.work) / part for name, part in CUDA_HEADERS.items()]
        library = torch / "lib" / "libc10_cuda.so"
        if not library.exists():
            raise SystemExit(f"the wheel of torch {self.name} is one without CUDA")
        needed = re.search(rb"libcudart\.so\.[0-9]+", library.read_bytes())
        assert needed is not None, library
        runtime = needed[0].decode()
        self._build_stand_in(runtime)
        self._build_calls(runtime, [torch / "include", *cuda], torch / "lib")

    def _build_stand_in(self, runtime: str) -> None:
        # The allocator binds to versioned symbols, whose version is the name of the library.
        versions = self.build_folder / "versions.map"
        versions.write_text(f"{runtime} {{ global: *; }};\n")
        self._compile(
            *("-std=c++17", "-shared", "-fPIC", f"-Wl,-soname,{runtime}"),
            *(f"-Wl,--version-script={versions}", str(SOURCES / "stand_in_cuda.cpp"), "-ldl"),
            output=runtime,
        )
        # Some releases bind to the driver as well: an empty library leads to the one above.
        self._compile(
            *("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-Wl,--no-as-needed"),
            *(f"-L{self.build_folder}", f"-l:{runtime}", "-xc++", "/dev/null"),
            output="libcuda.so.1",
        )

    def _build_calls(self, runtime: str, includes: list[Path], libraries: Path) -> None:
        found_at = [libraries, self.build_folder]
        self._compile(
            "-std=c++20" if self.version >= (2, 11) else "-std=c++17",
            # Wheels before 2.7 keep the strings of before C++11.
            f"-D_GLIBCXX_USE_CXX11_ABI={self.version >= (2, 7):d}",
            f"-DRELEASE={self.version[0] * 100 + self.version[1]}",
            *(f"-isystem{folder}" for folder in includes),
            str(SOURCES / "calls.cpp"),
            *(f"-L{folder}" for folder in found_at),
            *("-l:libc10_cuda.so", "-l:libc10.so", "-Wl,--no-as-needed"),
            *(f"-l:{runtime}", "-l:libcuda.so.1", "-Wl,--allow-shlib-undefined"),
            # Unlike a run path, this one also holds for what the libraries ask for themselves.
            *("-Wl,--disable-new-dtags", *(f"-Wl,-rpath,{folder}" for folder in found_at)),
            output="calls",
        )

    def _compile(self, *arguments: str, output: str) -> None:
        subprocess.run(["c++", "-O1", "-o", self.build_folder / output, *arguments], check=True)

    def run(self, program: Program) -> list[Step] | None:
        """What came of each call; None if the release refused one or died of it."""
        ran = subprocess.run(
            [
                self.build_folder / "calls",
                str(program.capacity_bytes),
                str(program.device_seed),
            ],
            input="\n".join(program.calls) + "\n",
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        steps: list[Step] = [json.loads(line) for line in ran.stdout.splitlines()]
        refused = any(step[2] == "refused" for step in steps)
        return None if ran.returncode or refused else steps


def unpack(requirement: str, parts: tuple[str, ...], work: Path) -> Path:
    """The folder with the parts of a wheel, which is downloaded unless it is in ``work/wheels``.

    Args:
        requirement: as pip takes it, with the exact version.
        parts: what the names of the files begin with.
    """
    folder = work / requirement.replace("==", "-")
    if folder.exists():
        return folder
    wheels = work / "wheels"
    pattern = requirement.replace("-", "_").replace("==", "-") + "[-+]*.whl"
    if not list(wheels.glob(pattern)):
        download(requirement, wheels)
    # Moved to its place when it is whole, so that what is there can be relied on.
    partial = wheels / "unpacked"
    with zipfile.ZipFile(next(wheels.glob(pattern))) as wheel:
        wheel.extractall(partial, [name for name in wheel.namelist() if name.startswith(parts)])
    return partial.rename(folder)


def download(requirement: str, wheels: Path) -> None:
    """Get one wheel, whichever Python asks: what is used of it is the same in all of them."""
    partial = wheels / "partial"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
            *("--python-version=3.11", f"--dest={partial}", requirement),
        ],
        check=True,
    )
    for wheel in partial.iterdir():
        shutil.move(wheel, wheels / wheel.name)
