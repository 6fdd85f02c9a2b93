"""What ``vramscope diagnose`` says to a person, from the object that ``--json`` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any, Final

from vramscope.cli.printable import printable
from vramscope.size_text import size_text

SEVERITIES: Final = ("info", "warning", "critical")
WIDTH: Final = 80
_MOST_RANKS: Final = 8
_MOST_CULPRITS: Final = 5
_INDENT: Final = 10
"""The column in which words begin; left of it stands what they are."""


def diagnose_text(answer: dict[str, Any]) -> str:
    """A line on what was judged, then each finding with its lines and what would help."""
    parts = [_head(answer), *map(_finding, answer["findings"])]
    return printable("\n\n".join(parts))


def _head(answer: dict[str, Any]) -> str:
    run = answer.get("run")
    words = [str(answer["source"])]
    if run:
        words = [str(run["name"]), f"run {run['id']}", str(run["state"])]
        if run.get("step") is not None:
            words.append(f"step {run['step']:,}")
    elif answer.get("of"):
        words.append(str(answer["of"]))
    findings = answer["findings"]
    if findings:
        counts = [
            f"{count} {severity}"
            for severity in reversed(SEVERITIES)
            if (count := sum(finding["severity"] == severity for finding in findings))
        ]
        words.append(", ".join(counts))
    elif run and answer.get("judged_ns") is None:
        words.append("not judged yet")
    else:
        words.append("nothing found")
    return textwrap.fill(" · ".join(words), WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _finding(finding: dict[str, Any]) -> str:
    lines = _entry(str(finding["severity"]).upper(), str(finding["summary"]))
    about = [_ranks(finding.get("ranks") or []), str(finding.get("detail") or "")]
    if finding.get("stage") == "suspected":
        about.insert(0, "Suspected, not yet sure.")
    lines += _entry("", " ".join(word for word in about if word))
    culprits: list[dict[str, Any]] = finding.get("culprits") or []
    for culprit in culprits[:_MOST_CULPRITS]:
        lines += _entry("line" if culprit.get("line") else "holder", _culprit(culprit))
    for number, remedy in enumerate(finding.get("remedies") or [], 1):
        lines += _remedy(number, remedy)
    return "\n".join(lines)


def _ranks(ranks: list[int]) -> str:
    if not ranks:
        return ""
    if len(ranks) == 1:
        return f"Rank {ranks[0]}."
    shown = ", ".join(map(str, ranks[:_MOST_RANKS]))
    more = f" and {len(ranks) - _MOST_RANKS} more" if len(ranks) > _MOST_RANKS else ""
    return f"Ranks {shown}{more}."


def _culprit(culprit: dict[str, Any]) -> str:
    words: list[str] = []
    if culprit.get("line"):
        words.append(f"{culprit['file']}:{culprit['line']} {culprit.get('function', '')}".strip())
    if culprit.get("bytes") is not None:
        words.append(size_text(culprit["bytes"]))
    if culprit.get("bytes_per_step"):
        words.append(f"{size_text(int(culprit['bytes_per_step']))} per step")
    if culprit.get("tensors"):
        words.append(", ".join(map(str, culprit["tensors"][:3])))
    text = "; ".join(words)
    held: list[Any] = culprit.get("held_by") or []
    return f"{text}; held by {' ← '.join(map(str, held))}" if held else text


def _remedy(number: int, remedy: dict[str, Any]) -> list[str]:
    action = str(remedy["action"])
    text = f"{number}. {action[:1].upper()}{action[1:]}"
    if remedy.get("predicted_bytes"):
        text += f" (frees {size_text(remedy['predicted_bytes'])})"
    lines = _entry("remedies" if number == 1 else "", text, hang=3)
    why = _sentence(str(remedy.get("why") or ""))
    if remedy.get("cost"):
        why = f"{why} Costs: {remedy['cost']}.".strip()
    lines += _entry("", why, indent=_INDENT + 3)
    fix = str(remedy.get("fix") or "")
    # To be copied: never broken.
    lines += [" " * (_INDENT + 3) + line for line in fix.splitlines() if line.strip()]
    return lines


def _sentence(text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}" + ("" if text.endswith((".", "?")) else ".")


def _entry(label: str, text: str, *, indent: int = _INDENT, hang: int = 0) -> list[str]:
    """Text in its column, with a label left of its first line."""
    if not text:
        return []
    wrapped = textwrap.wrap(
        text,
        WIDTH - indent,
        subsequent_indent=" " * hang,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return list(_labelled(label, wrapped, indent))


def _labelled(label: str, lines: Iterable[str], indent: int) -> Iterable[str]:
    for line in lines:
        yield f"{label:<{indent}}{line}"
        label = ""
