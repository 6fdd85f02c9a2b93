"""What has to be said of a job, what must not be said, and what is wrong with what was said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent

Told = Mapping[str, Any]
"""A finding as the server tells it."""


@dataclass(frozen=True)
class Expected:
    """A finding that has to be there.

    Args:
        kinds: its kind is one of these.
        culprit: end of the comment of the lines in the script of which one has to be named: it ends
            with ``# <culprit>``. Empty: no line.
        or_named: words that name the same thing as that line does.
        holder: what has to be said of who holds it.
        says: what has to be in its sentences.
        remedy: what one of its remedies has to say.
    """

    kinds: tuple[str, ...]
    culprit: str = "culprit"
    or_named: str = ""
    holder: str = ""
    says: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Case:
    """A script and its verdict. Patterns are regular expressions, whatever the case of letters.

    Args:
        name: the case, with a letter for its variants.
        script: file name; else that of the case.
        arguments: of the script.
        expects: what has to be said, at some time; None: nothing has to be.
        never: kinds that must not be made sure of, at any time.
        never_suspected: kinds that must not even be suspected.
        never_says: what no sentence may say.
        never_advises: what no remedy may advise.
        quiet: nothing at all may be said at warning or above.
        capacity: of the emulated device.
        emulated: False runs it as it is, on the host where there is no device.
        environment: of the job.
        ends: its exit code.
        needs: what it has to have: ``gpu``, or nothing.
        wrong: why it is told wrongly so far; empty: it is not.
        sometimes: why it is not always told in full.
    """

    name: str
    script: str = ""
    arguments: tuple[str, ...] = ()
    expects: Expected | None = None
    never: tuple[str, ...] = ()
    never_suspected: tuple[str, ...] = ()
    never_says: str = ""
    never_advises: str = ""
    quiet: bool = False
    capacity: str = "4GiB"
    emulated: bool = True
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    ends: int = 0
    needs: str = ""
    wrong: str = ""
    sometimes: str = ""

    @property
    def path(self) -> Path:
        """Its script."""
        return FOLDER / (self.script or f"{re.split('[^C0-9]', self.name)[0]}.py")

    def lines(self, mark: str) -> set[int]:
        """Numbers of the lines whose comment is ``mark``."""
        lines = enumerate(self.path.read_text().splitlines(), 1)
        return {number for number, line in lines if line.endswith(f"# {mark}")}


def mistakes(case: Case, versions: Sequence[Told]) -> list[str]:
    """What is wrong with what was said of a case.

    Args:
        versions: every finding as it was at any time, the oldest first.
    """
    return [*missing(case, versions), *(what for _, what in said_wrongly(case, versions))]


def missing(case: Case, versions: Sequence[Told]) -> Iterator[str]:
    """What should have been told and was not."""
    expected = case.expects
    if expected is None:
        return
    of_kind = [told for told in versions if told["kind"] in expected.kinds and is_sure(told)]
    if not of_kind:
        yield f"nothing was told of kind {' or '.join(expected.kinds)}"
        return
    lacks = [list(_lacks(case, expected, told)) for told in of_kind]
    if [] not in lacks:
        yield from min(lacks, key=len)


def _lacks(case: Case, expected: Expected, told: Told) -> Iterator[str]:
    everything = "\n".join([*sentences(told), *holders(told)])
    if expected.culprit:
        wanted = case.lines(expected.culprit)
        assert wanted, f"no line of {case.path.name} is marked # {expected.culprit}"
        is_named = bool(expected.or_named) and matches(expected.or_named, everything)
        if not wanted & named_lines(case, told) and not is_named:
            yield f"line {sorted(wanted)} is not named, but {sorted(named_lines(case, told))}"
    if expected.holder and not matches(expected.holder, everything):
        yield f"holder {expected.holder!r} is not named, but {holders(told)}"
    if expected.says and not matches(expected.says, "\n".join(sentences(told))):
        yield f"{expected.says!r} is not said, but {sentences(told)}"
    if expected.remedy and not matches(expected.remedy, "\n".join(advice(told))):
        yield f"{expected.remedy!r} is not advised, but {advice(told)}"


def said_wrongly(case: Case, versions: Sequence[Told]) -> Iterator[tuple[str, str]]:
    """What was told and must not be: the kind of the finding, and why."""
    for told in versions:
        what = f"{told['kind']} ({told['severity']}, {told['stage']}): {told['summary']}"
        says, advises = "\n".join(sentences(told)), "\n".join(advice(told))
        if told["kind"] in case.never and is_sure(told):
            yield told["kind"], f"must not be told: {what}"
        if told["kind"] in case.never_suspected:
            yield told["kind"], f"must not be told, not even as a suspicion: {what}"
        if case.quiet and told["severity"] != "info":
            yield told["kind"], f"nothing is wrong, but {what}"
        if case.never_says and matches(case.never_says, says):
            yield told["kind"], f"must not be said ({case.never_says}): {says}"
        if case.never_advises and matches(case.never_advises, advises):
            yield told["kind"], f"must not be advised ({case.never_advises}): {what}: {advises}"


def is_sure(told: Told) -> bool:
    """Whether it is told as a verdict, and not as a question."""
    return bool(told["stage"] == "confirmed" or told["severity"] != "info")


def matches(pattern: str, text: str) -> bool:
    """Whether it occurs, whatever the case of letters."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def sentences(told: Told) -> list[str]:
    """What it says."""
    return [told["summary"], told["detail"]]


def holders(told: Told) -> list[str]:
    """Who holds what, in its words, and in what functions."""
    return [
        " · ".join([*reversed(each["held_by"]), *each["tensors"], each["function"]])
        for each in told["culprits"]
    ]


def advice(told: Told) -> list[str]:
    """What it advises."""
    return [
        " · ".join([each["action"], each["why"], each["cost"], each["fix"]])
        for each in told["remedies"]
    ]


def named_lines(case: Case, told: Told) -> set[int]:
    """Lines of the script that it names, as a culprit or in its words."""
    culprits = {
        each["line"] for each in told["culprits"] if Path(each["file"]).name == case.path.name
    }
    text = "\n".join([*sentences(told), *holders(told)])
    return culprits | {int(n) for n in re.findall(rf"{re.escape(case.path.name)}:(\d+)", text)}
