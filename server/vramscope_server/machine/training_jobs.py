"""The training processes of this machine, as ``vramscope ps`` lists them.

A program of its own, run when somebody looks: the server does not import the agent, and what
reads other processes does not run in the process that answers the network.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from vramscope_protocol.errors import INTERNAL, VramscopeError
from vramscope_server.settings import Limits

COMMAND: Final = (sys.executable, "-m", "vramscope", "ps", "--json")
_COMPLAINT_BYTES: Final = 16 * 1024

_decoder: Final = msgspec.json.Decoder(list[dict[str, Any]])


class JobList(NamedTuple):
    """What was found, and when (nanoseconds since the epoch)."""

    jobs: list[dict[str, Any]]
    taken_ns: int


class TrainingJobs:
    """Lists them when asked: one listing at a time, given again while it is fresh.

    Args:
        limits: how long a listing may take, how large it may be, how old it may get.
        command: prints one JSON list on its standard output.
        clock: for the age of a list.
    """

    def __init__(
        self,
        limits: Limits,
        command: Sequence[str] = COMMAND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._command = command
        self._clock = clock
        self._listing: asyncio.Task[JobList] | None = None
        self._finished_s = 0.0

    async def list_jobs(self) -> JobList:
        """The training processes, at most ``machine_list_age_s`` old.

        Raises:
            VramscopeError: ``internal``: they could not be listed, with the reason.
        """
        listing = self._listing
        if listing is None or (listing.done() and self._age_s() >= self._limits.machine_list_age_s):
            listing = self._listing = asyncio.create_task(self._run())
        # A browser that leaves must not take the list away from the others that wait for it.
        return await asyncio.shield(listing)

    async def stop(self) -> None:
        """End a listing that still runs."""
        listing, self._listing = self._listing, None
        if listing is not None:
            listing.cancel()
            with suppress(asyncio.CancelledError, VramscopeError):
                await listing

    def _age_s(self) -> float:
        return self._clock() - self._finished_s

    async def _run(self) -> JobList:
        try:
            return JobList(_jobs(await self._output()), time.time_ns())
        finally:
            self._finished_s = self._clock()

    async def _output(self) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(os.environ),
                # "-m" looks for modules in the current folder first, and that may be anybody's.
                cwd="/",
            )
        except OSError as error:
            raise _failed(error.strerror or "it could not be started") from None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            output, complaint = await asyncio.wait_for(
                asyncio.gather(
                    _read(process.stdout, self._limits.machine_list_bytes),
                    _read(process.stderr, _COMPLAINT_BYTES),
                ),
                self._limits.machine_list_s,
            )
            code = await asyncio.wait_for(process.wait(), self._limits.machine_list_s)
        except (TimeoutError, asyncio.TimeoutError):
            raise _failed(f"no answer within {self._limits.machine_list_s:g} s") from None
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if code != 0:
            lines = complaint.decode("utf-8", "replace").strip().splitlines()
            raise _failed(lines[-1] if lines else f"exit code {code}")
        return output


async def _read(stream: asyncio.StreamReader, most_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = most_bytes
    while part := await stream.read(64 * 1024):
        left -= len(part)
        if left < 0:
            raise _failed(f"more than {most_bytes} bytes of output")
        parts.append(part)
    return b"".join(parts)


def _jobs(output: bytes) -> list[dict[str, Any]]:
    try:
        return _decoder.decode(output)
    except msgspec.DecodeError as error:
        raise _failed(f"expected a list of processes: {error}") from None


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What the listing needs; tokens and options of jobs are none of its business."""
    return {name: text for name, text in variables.items() if not name.startswith("VRAMSCOPE_")}


def _failed(reason: str) -> VramscopeError:
    return VramscopeError(INTERNAL, f"the processes of this machine could not be listed: {reason}")
