"""Looks at the memory map of a running job through the server, as a page does."""

from __future__ import annotations

import json
import time
import urllib.error
from pathlib import Path
from typing import Any

from tests.support.job_process import Api, wait_until

STATES = {0: "inactive", 1: "active_allocated", 2: "active_pending_free"}


def map_of(api: Api, run: str) -> dict[str, Any] | None:
    """The map of rank 0 as of the last frame; ``None`` before the first."""
    try:
        found: dict[str, Any] = api.get(f"/api/v1/runs/{run}/map")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return None
    return found


def maps_at_step_ends(api: Api, run: str, count: int) -> dict[int, dict[str, Any]]:
    """The next maps that were taken at step ends, by step; the map is watched meanwhile."""
    found: dict[int, dict[str, Any]] = {}
    watched_until_s = 0.0

    def look() -> int:
        nonlocal watched_until_s
        if time.monotonic() > watched_until_s:
            watched_until_s = time.monotonic() + 45
            path = f"/api/v1/runs/{run}/commands"
            api.post(path, {"name": "watch_map", "ranks": "all", "params": {"seconds": 60}})
        answer = map_of(api, run)
        if answer is not None and answer["is_step_end"]:
            found[answer["step"]] = answer
        return len(found)

    wait_until(look, lambda maps: maps >= count, f"{count} maps at step ends", 180)
    return found


def plain_map(answer: dict[str, Any]) -> list[Any]:
    """A map in the form that jobs/mapped_training.py writes."""
    segments, blocks = answer["segments"], answer["blocks"]
    plain = []
    start = 0
    for i, count in enumerate(segments["blocks"]):
        rows = range(start, start + count)
        plain.append(
            [
                segments["address"][i],
                segments["size"][i],
                segments["stream"][i],
                [segments["pool_owner"][i], segments["pool_number"][i]],
                [[blocks["size"][k], STATES[blocks["state"][k]]] for k in rows],
            ]
        )
        start += count
    return sorted(plain)


def names_of(answer: dict[str, Any], category: int) -> set[str]:
    """Owners of the blocks of one category."""
    blocks, texts = answer["blocks"], answer["texts"]
    pairs = zip(blocks["category"], blocks["owner"], strict=True)
    return {texts[owner] for code, owner in pairs if code == category and owner >= 0}


def written_by(path: Path) -> dict[str, Any]:
    """What the job wrote down."""
    written: dict[str, Any] = json.loads(path.read_text())
    return written
