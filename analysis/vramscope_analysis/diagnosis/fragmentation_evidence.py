"""The numbers behind a finding about fragmentation, and those that a card shows in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from vramscope_analysis.diagnosis.cache_use import STALE_SHARE, CacheUse
from vramscope_analysis.diagnosis.next_request import NextRequest
from vramscope_analysis.diagnosis.piece_shape import PieceShape, stream_text
from vramscope_analysis.diagnosis.request_fit import RequestFit, is_large, request_fit
from vramscope_analysis.diagnosis.settings_advice import refuted
from vramscope_analysis.diagnosis.words import count_text, size_text
from vramscope_analysis.evidence.memory_layout import MemoryLayout, PoolLayout
from vramscope_analysis.evidence.recorded_requests import RecordedRequests, Request
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.evidence.settings_trial import SettingsTrial

MOST_POOLS: Final = 16


def layout_of_pieces(rank: RankEvidence, use: CacheUse | None) -> MemoryLayout | None:
    """Where the pieces lie: as a recording has it for its highest moment, else as the map has it.

    One in which something else was reserved is of another time.

    Args:
        rank: the process.
        use: what is reserved now; None is not known.
    """
    recorded = None if rank.window is None else rank.window.layout
    for layout in (recorded, rank.layout):
        if layout is None or use is None:
            continue
        if abs(layout.reserved_bytes - use.reserved_bytes) <= STALE_SHARE * use.reserved_bytes:
            return layout
    return None


def fragmentation_evidence(
    rank: RankEvidence,
    use: CacheUse | None,
    layout: MemoryLayout | None,
    shape: PieceShape | None,
    ahead: NextRequest | None,
    flushes: int,
) -> dict[str, Any]:
    """All numbers by name.

    Args:
        rank: the process.
        use: how the cache is used; None is not known.
        layout: where the pieces lie; None is not known.
        shape: what kind that makes it.
        ahead: the request that finds no place, if there is one.
        flushes: for which there was memory enough.
    """
    requests, fit = _requests(rank), _fit(rank)
    facts = [request_sentence(rank) if ahead is not None else "", _use_fact(rank, use)]
    return {
        "series": "reserved_bytes.all.current",
        **_of_use(use),
        "rounding_bytes": rounding_bytes(rank),
        "needless_flushes": flushes,
        "shape": "" if shape is None else shape.kind,
        "shape_pool": None if shape is None else pool_row(shape.pool),
        "pools": [] if layout is None else [pool_row(pool) for pool in layout.pools[:MOST_POOLS]],
        "pinned_by": [] if layout is None else [dict(vars(pin)) for pin in layout.pins],
        "largest_satisfiable_bytes": None if fit is None else fit.largest_bytes,
        "room_bytes": None if fit is None else fit.room_bytes,
        **request_numbers(requests, fit),
        "facts": [fact for fact in facts if fact],
        "does_not_help": list(refuted(rank.settings, rank.trials)),
        "replayed": replayed(rank.trials),
    }


def request_sentence(rank: RankEvidence) -> str:
    """What the job asks for in one piece, against what it would get; empty is not known."""
    requests, fit = _requests(rank), _fit(rank)
    served = "" if fit is None else f"Without a flush {size_text(fit.largest_bytes)} can be had now"
    if requests is None:
        return f"{served} in one piece." if served else ""
    beyond = 0 if fit is None else _beyond(requests, fit)
    more = f": {beyond} of {len(requests.of_steps)} asked for more" if beyond else ""
    return f"{asked_text(requests)}. {served}{more}." if served else f"{asked_text(requests)}."


def beyond_sentence(rank: RankEvidence) -> str:
    """How often the job asked for more in one piece than there is, of enough; empty is never."""
    requests, fit = _requests(rank), _fit(rank)
    if requests is None or fit is None:
        return ""
    beyond = _beyond(requests, fit)
    largest, free = max(fit.largest_free_bytes, fit.room_bytes), fit.free_bytes + fit.room_bytes
    if not beyond or free < max(requests.of_steps):
        return ""
    return (
        f"{beyond} of {count_text(len(requests.of_steps), 'recorded step')} asked for more in one "
        f"piece than the largest, {size_text(largest)}, of {size_text(free)} free."
    )


def _requests(rank: RankEvidence) -> RecordedRequests | None:
    return None if rank.window is None else rank.window.requests


def _fit(rank: RankEvidence) -> RequestFit | None:
    """What the stream could have that asks most of each step, else the one with most in use."""
    requests = _requests(rank)
    every = None if requests is None else requests.every_step
    return request_fit(rank, None if every is None else every.stream)


def rounding_bytes(rank: RankEvidence) -> int | None:
    """How much larger blocks are than what was asked for, at the end of the last step."""
    allocated = rank.steps.last("allocated_bytes.all.current")
    requested = rank.steps.last("requested_bytes.all.current")
    return None if allocated is None or requested is None else max(allocated - requested, 0)


def asked_text(requests: RecordedRequests) -> str:
    """What the recorded steps asked for in one piece, without a full stop."""
    every, most = requests.every_step, requests.largest
    if every is None:
        return f"The largest recorded request is {size_text(most.bytes)}{_place(most)}"
    least = f"Each of {count_text(requests.steps, 'recorded step')} asks for"
    highest = max(requests.of_steps)
    if highest == every.bytes:
        return f"{least} {size_text(every.bytes)} in one piece{_place(every)}"
    return f"{least} {size_text(every.bytes)} to {size_text(highest)} in one piece{_place(every)}"


def _place(request: Request) -> str:
    return f", at {request.place}" if request.place else ""


def _beyond(requests: RecordedRequests, fit: RequestFit) -> int:
    """In how many recorded steps the largest request would find no place now."""
    sizes = [size for size in requests.of_steps if is_large(size)]
    return sum(fit.place_of(size) in ("flush", "nowhere") for size in sizes)


def _use_fact(rank: RankEvidence, use: CacheUse | None) -> str:
    if use is None:
        return ""
    used = f"{size_text(use.highest_bytes)} of {size_text(use.reserved_bytes)}"
    rounding = rounding_bytes(rank)
    more = "" if not rounding else f"; blocks are {size_text(rounding)} larger than asked for"
    return f"At the peak {used} were in use{more}."


def _of_use(use: CacheUse | None) -> dict[str, Any]:
    if use is None:
        return {}
    return {
        "reserved_bytes": use.reserved_bytes,
        "highest_bytes": use.highest_bytes,
        "in_pieces_bytes": use.unexplained_bytes,
        "utilisation_at_peak": round(use.highest_bytes / max(use.reserved_bytes, 1), 4),
        "stranded_bytes": use.stranded_bytes,
        "largest_free_bytes": use.largest_free_bytes,
        "private_pool_bytes": use.private_bytes,
        "limit_bytes": use.limit_bytes,
    }


def request_numbers(
    requests: RecordedRequests | None, fit: RequestFit | None = None
) -> dict[str, Any]:
    """The requests of a window by name.

    Args:
        requests: None is not known.
        fit: what could be had now.
    """
    if requests is None:
        return {}
    every = requests.every_step
    return {
        "largest_request_bytes": requests.largest.bytes,
        "every_step_request_bytes": None if every is None else every.bytes,
        "every_step_request_at": "" if every is None else every.place,
        "recorded_steps": requests.steps,
        "steps_beyond": None if fit is None else _beyond(requests, fit),
        "recurring_requests": [
            {"bytes": each.bytes, "a_step": each.a_step, "stream": each.stream, "at": each.place}
            for each in requests.recurring
        ],
    }


def replayed(trials: Sequence[SettingsTrial]) -> list[dict[str, Any]]:
    """What would have been reserved at the peak under each setting that was replayed."""
    return [
        {"settings": trial.text, "peak_reserved_bytes": trial.peak_reserved_bytes}
        for trial in trials
        if not trial.runs_out
    ]


def pool_row(pool: PoolLayout) -> dict[str, Any]:
    """One pool of one stream by name, as in a report of running out of memory and more."""
    return {
        "pool": pool.pool,
        "stream": pool.stream,
        "stream_name": stream_text(pool.stream),
        "reserved_bytes": pool.reserved_bytes,
        "active_bytes": pool.live_bytes,
        "bytes": pool.free_bytes,
        "count": pool.pieces,
        "largest_bytes": pool.largest_bytes,
        "returnable_bytes": pool.returnable_bytes,
        "pinned_bytes": pool.pinned_bytes,
    }
