"""Reports of running out of memory that the agent wrote in emulated jobs (tests/data/ooms)."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from vramscope_analysis.evidence.oom_reading import read_oom_report
from vramscope_analysis.evidence.oom_report import OomReport

FILE = Path(__file__).parents[1] / "data" / "ooms" / "reports.json.gz"


@lru_cache(maxsize=1)
def recorded_reports() -> dict[str, dict[str, Any]]:
    """All of them as JSON values, by name."""
    reports: dict[str, dict[str, Any]] = json.loads(gzip.decompress(FILE.read_bytes()))
    return reports


def recorded_oom(name: str) -> OomReport:
    """One of them, read as the product reads it."""
    return read_oom_report(json.dumps(recorded_reports()[name]))
