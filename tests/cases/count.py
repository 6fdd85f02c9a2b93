"""Counts verdicts by kind, as docs/verdicts.md has them: ``python -m tests.cases.count FILE``.

The file is what ``VRAMSCOPE_TEST_VERDICTS=FILE pytest tests/cases`` writes.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def table(verdicts: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table: of each kind, how many were to be told, were told, and were right."""
    wanted, found, told, wrong = (Counter[str]() for _ in range(4))
    for verdict in verdicts:
        if verdict["expects"]:
            kind = next((k for k in verdict["expects"] if k in verdict["told"]), None)
            kind = kind or verdict["expects"][0]
            wanted[kind] += 1
            found[kind] += verdict["is_found"]
        told.update(verdict["told"])
        wrong.update(set(verdict["told_wrongly"]) & set(verdict["told"]))
    yield "| kind | to be told | told rightly | recall | told in jobs | wrongly | precision |"
    yield "|---|---|---|---|---|---|---|"
    for kind in sorted(wanted | told):
        recall = share(found[kind], wanted[kind])
        precision = share(told[kind] - wrong[kind], told[kind])
        numbers = f"{wanted[kind]} | {found[kind]} | {recall} | {told[kind]} | {wrong[kind]}"
        yield f"| {kind} | {numbers} | {precision} |"


def share(part: int, whole: int) -> str:
    """A share in percent; a dash of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text().splitlines()
    print("\n".join(table(json.loads(line) for line in lines)))
