"""What an agent told of a job, kept in a small file, and given to judges as it was at any step."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.support.fake_server import FakeServer
from tests.support.job_process import REPOSITORY
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import (
    Happening,
    RankEvidence,
    RunEvidence,
    Stretch,
)
from vramscope_protocol.messages import AgentStatus, Event

FOLDER: Final = REPOSITORY / "tests/data/workloads"
_NOT_KEPT: Final = ("agent.", "device.power", "device.temperature", "device.utilization", "gpu.")
_SAMPLE_EVERY_NS: Final = 10**9
_DATE: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class RecordedWorkload:
    """One job of one rank.

    Args:
        name: of the workload.
        about: ``total_bytes``, ``limit_bytes``, ``torch``, ``outside``, ``events``.
        steps, samples: all rows; samples about one a second.
    """

    name: str
    about: dict[str, Any]
    steps: Rows
    samples: Rows

    @staticmethod
    def of(name: str, server: FakeServer, total_bytes: int) -> RecordedWorkload:
        """What a server was told of the only job that it heard."""
        samples: list[dict[str, Any]] = []
        for row in server.rows("sample"):
            if not samples or row["time_ns"] >= samples[-1]["time_ns"] + _SAMPLE_EVERY_NS:
                samples.append(row)
        status = server.of_type(AgentStatus)
        events = [
            {"time_ns": e.time_ns, "kind": e.kind, "step": e.step, "text": e.text, "data": e.data}
            for e in server.of_type(Event)
        ]
        about = {
            "total_bytes": total_bytes,
            "events": events,
            "outside": list(status[-1].outside or ()) if status else [],
        }
        steps = list(server.rows("step"))
        return RecordedWorkload(name, about, _rows(steps), _rows(samples))

    @staticmethod
    def read(path: Path) -> RecordedWorkload:
        """Read a file that :meth:`write` wrote."""
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(bytes(file["about"]))
            tables = [
                {name: file[f"{kind}/{name}"].cumsum() for name in about["columns"][kind]}
                for kind in ("steps", "samples")
            ]
        steps, samples = (
            Rows(table["time_ns"], {k: v for k, v in table.items() if k != "step"}, table["step"])
            for table in tables
        )
        return RecordedWorkload(path.stem, about, steps, samples)

    def write(self, folder: Path = FOLDER) -> Path:
        """Write it; integers as differences, which zip well, and the same bytes each time."""
        tables = {"steps": self.steps, "samples": self.samples}
        columns = {kind: ["time_ns", "step", *rows.columns] for kind, rows in tables.items()}
        about = json.dumps(self.about | {"columns": columns}, sort_keys=True).encode()
        path = folder / f"{self.name}.npz"
        with zipfile.ZipFile(path, "w") as file:
            _put(file, "about", np.frombuffer(about, np.uint8))
            for kind, rows in tables.items():
                assert rows.number is not None
                whole = {"time_ns": rows.time_ns, "step": rows.number, **rows.columns}
                for name in columns[kind]:
                    _put(file, f"{kind}/{name}", np.diff(whole[name], prepend=0))
        return path

    def run(self, row: int, *, state: Any = "live") -> RunEvidence:
        """The run as it was after ``row`` steps."""
        steps = self.steps.before(row)
        now_ns = int(steps.time_ns[-1]) if row else int(self.samples.time_ns[0])
        samples = self.samples.before(int(np.searchsorted(self.samples.time_ns, now_ns, "right")))
        told = [each for each in self.about["events"] if each["time_ns"] <= now_ns]
        events = tuple(Happening(**each) for each in told if each["kind"] != "phase")
        settings = [each.data.get("text") for each in events if each.kind == "settings"]
        rank = RankEvidence(
            0,
            "host",
            steps,
            samples,
            tuple(_stretches(told)),
            events,
            self.about["total_bytes"],
            settings=settings[-1] if settings else None,
            outside=tuple(self.about["outside"]),
        )
        return RunEvidence(self.name, now_ns, state, (rank,), 1, True)


def _rows(told: Sequence[dict[str, Any]]) -> Rows:
    names = [
        name
        for name, value in told[-1].items()
        if name not in ("time_ns", "step") and type(value) is int and not name.startswith(_NOT_KEPT)
    ]
    columns = {name: _column(told, name) for name in names}
    return Rows(_column(told, "time_ns"), columns, _column(told, "step"))


def _column(told: Sequence[dict[str, Any]], name: str) -> NDArray[np.int64]:
    return np.array([row[name] for row in told], np.int64)


def _stretches(told: Sequence[dict[str, Any]]) -> Iterator[Stretch]:
    newest = {each["data"]["id"]: each for each in told if each["kind"] == "phase"}
    for each in newest.values():
        data = each["data"]
        yield Stretch(
            data["phase"], data["start_ns"], data["end_ns"], each["step"], data["peak_bytes"]
        )


def _put(file: zipfile.ZipFile, name: str, values: NDArray[Any]) -> None:
    data = io.BytesIO()
    np.lib.format.write_array(data, values, allow_pickle=False)
    entry = zipfile.ZipInfo(f"{name}.npy", _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, data.getvalue())
