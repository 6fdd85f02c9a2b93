"""The stored reports as the rest of the server sees them: put in, judged, listed, given out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from sqlalchemy import Connection

from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_protocol.errors import NOT_FOUND, VramscopeError
from vramscope_protocol.messages import OomBegin
from vramscope_server.ooms.judged_report import put_verdict, read_report, whole_report
from vramscope_server.ooms.report_json import read_json
from vramscope_server.ooms.report_row import number, shown_row, stored_row, text
from vramscope_server.settings import Limits
from vramscope_server.store import claims, ooms
from vramscope_server.store.claims import RunClaim
from vramscope_server.store.store import Store

_logger = logging.getLogger("vramscope.ooms")

_MOST_LISTED: Final = 1000
_MOST_TAKEN_UP: Final = 32
_MAX_NEWS: Final = 1024
_MAX_TASKS: Final = 4096
"""Events that wait until what they say is stored; one that comes beyond it is not heard."""

Shown = dict[str, Any]


class OomAudience(Protocol):
    """Who is told of reports that come and change."""

    def publish_oom(self, run_id: str, oom: Shown) -> None:
        """Hand a row of the list on."""
        ...


class OomEvidence(Protocol):
    """Who judges a run by its reports. Called on the event loop; must not block."""

    def take_oom(self, run_id: str, rank: int, report: OomReport, size_bytes: int = ...) -> None:
        """A rank ran out of memory; its report took so many bytes of JSON."""
        ...


class Runs(Protocol):
    """What is read of the registry."""

    def runs(self) -> list[dict[str, Any]]:
        """Every run, newest first."""
        ...


class OomReports:
    """Reports of all runs. Lives on the event loop; only storing and judging is awaited.

    Args:
        store: where they are.
        audience: told of changes.
        evidence: judges by them.
        registry: which runs are live.
        limits: how many are kept.
        clock_ns: when one was received.
    """

    def __init__(
        self,
        store: Store,
        audience: OomAudience,
        evidence: OomEvidence,
        registry: Runs,
        limits: Limits,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._audience = audience
        self._evidence = evidence
        self._registry = registry
        self._limits = limits
        self._clock_ns = clock_ns
        # What was told of reports that have not come yet, by their run and id.
        self._news: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        # What is judged last must be what is known last.
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        """Give the judges the reports of runs that are live."""
        for run in self._registry.runs():
            if run["state"] == "live":
                await self.take_up(run["id"])

    async def stop(self) -> None:
        """Wait for what is being stored."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def take_up(self, run_id: str) -> None:
        """Give the judges the newest reports of a run."""
        found = await self._store.read(lambda c: ooms.newest_bodies(c, run_id, _MOST_TAKEN_UP))
        for row, data in found:
            report = await self._store.compute(partial(read_report, row, data))
            if report is not None:
                self._evidence.take_oom(run_id, row["rank"], report, len(data))

    async def of_run(self, run_id: str) -> list[Shown]:
        """Reports of a run, the newest first."""
        found = await self._store.read(lambda c: ooms.of_run(c, run_id, _MOST_LISTED))
        return [shown_row(row) for row in found]

    async def run_of(self, identity: str) -> str:
        """Id of the run that a report belongs to.

        Raises:
            VramscopeError: ``not_found``.
        """
        run_id: str = (await self._row(identity))["run"]
        return run_id

    async def claim_of(self, run_id: str) -> RunClaim | None:
        """Who holds a run; ``None``: there is no such run."""
        return await self._store.read(lambda c: claims.claim_of(c, run_id))

    async def is_known(self, identity: str) -> bool:
        """Whether a report is stored."""
        return await self._store.read(lambda c: ooms.get(c, identity)) is not None

    async def get(self, identity: str) -> Shown:
        """One report, with its verdict and those of other ranks at the same moment.

        Raises:
            VramscopeError: ``not_found``.
        """
        row = await self._row(identity)
        data = await self._store.read(lambda c: ooms.body(c, identity))
        others = await self._store.read(lambda c: ooms.of_run(c, row["run"], _MOST_LISTED))
        if data is None:
            raise _not_found(identity)

        return await self._store.compute(lambda: whole_report(row, data, others))

    async def put(self, begin: OomBegin, data: bytes) -> None:
        """Store a report that has come, judge it and tell everybody.

        Raises:
            ValueError: it is not what was announced.
            VramscopeError, SQLAlchemyError: the database does not take it.
        """
        key, limits = (begin.run, begin.id), self._limits
        row = await self._store.compute(lambda: self._checked(begin, data))
        news = dict(self._news.get(key, {}))
        row |= news
        report = await self._store.compute(lambda: put_verdict(row, data))

        def write(connection: Connection) -> bool:
            is_new = ooms.add(connection, row, data)
            gone = ooms.make_room(
                connection,
                begin.run,
                begin.rank,
                rank_count=limits.oom_rank_count,
                run_count=limits.oom_run_count,
                total_bytes=limits.oom_total_bytes,
            )
            return is_new and begin.id not in gone

        is_new = await self._store.write(write)
        later = self._news.pop(key, {})
        if is_new:
            self._tell({**row, "raw_bytes": len(data)}, report)
        if later != news:  # told while it was stored
            self._begin_change(begin.run, [begin.id], later)

    def take_event(self, run_id: str, event: dict[str, Any]) -> None:
        """Something happened on a rank: it may say how a report went on."""
        told = event["data"]
        if event["kind"] == "oom_recovered":
            step = number(told.get("step"))
            identities: Any = told.get("reports", [told.get("report")])
            if step is not None and type(identities) is list:
                some = cast("list[object]", identities)[:64]
                self._note(run_id, some, {"recovered_step": step})
        elif event["kind"] == "oom_fatal":
            message = text(told.get("message"), 4000)
            news = {"is_fatal": True} | ({"message": message} if message else {})
            self._note(run_id, [told.get("report")], news)

    def _note(self, run_id: str, told: list[object], news: dict[str, Any]) -> None:
        identities = [each for each in told if isinstance(each, str) and 0 < len(each) <= 128]
        # Kept in any case: the report may be about to be stored.
        for identity in identities:
            self._news.setdefault((run_id, identity), {}).update(news)
        while len(self._news) > _MAX_NEWS:
            self._news.popitem(last=False)
        if identities:
            self._begin_change(run_id, identities, news)

    def _begin_change(self, run_id: str, identities: list[str], news: dict[str, Any]) -> None:
        if len(self._tasks) >= _MAX_TASKS:
            _logger.error("reports of %s change too fast: some of it is not stored", run_id)
            return
        task = asyncio.create_task(self._change_all(run_id, identities, news), name="vramscope-oom")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _change_all(self, run_id: str, identities: list[str], news: dict[str, Any]) -> None:
        async with self._changing:
            for identity in identities:
                try:
                    await self._change(run_id, identity, news)
                except VramscopeError as error:
                    _logger.error("report %s: %s", identity, error.message)

    async def _change(self, run_id: str, identity: str, news: dict[str, Any]) -> None:
        def change(connection: Connection) -> dict[str, Any] | None:
            row = ooms.get(connection, identity)
            if row is None or row["run"] != run_id:
                return None
            is_changed = bool(news.get("is_fatal"))
            if is_changed:
                ooms.was_fatal(connection, identity, news.get("message", row["message"]))
            if "recovered_step" in news:
                is_changed |= ooms.went_on(connection, identity, news["recovered_step"])
            return ooms.get(connection, identity) if is_changed else None

        row = await self._store.write(change)
        if row is None:
            return
        self._news.pop((run_id, identity), None)
        # Not while the database is held: both take long for a large one.
        data = await self._store.read(lambda c: ooms.body(c, identity))
        if data is None:
            return  # it has made room since
        report = await self._store.compute(lambda: put_verdict(row, data))
        await self._store.write(lambda c: ooms.judged(c, identity, row["shown"]))
        self._tell(row, report)

    def _tell(self, row: dict[str, Any], report: OomReport | None) -> None:
        self._audience.publish_oom(row["run"], shown_row(row))
        if report is not None:
            self._evidence.take_oom(row["run"], row["rank"], report, row["raw_bytes"])

    def _checked(self, begin: OomBegin, data: bytes) -> dict[str, Any]:
        report = read_json(data)
        if report.get("id") != begin.id:
            raise ValueError("expected the report that was announced, got something else")
        return stored_row(begin, report, self._clock_ns())

    async def _row(self, identity: str) -> dict[str, Any]:
        row = await self._store.read(lambda c: ooms.get(c, identity))
        if row is None:
            raise _not_found(identity)
        return row


def _not_found(identity: str) -> VramscopeError:
    return VramscopeError(NOT_FOUND, f"no report {identity!r} of running out of memory")
