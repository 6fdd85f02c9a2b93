"""Stream records as the store would give them."""

from __future__ import annotations

from vramscope_protocol.messages import DeviceInfo, RankInfo
from vramscope_server.registry.stream_summary import StreamSummary
from vramscope_server.store.runs import StreamRecord


def stream_record(
    uid: str = "stream-a",
    stream_id: int = 1,
    rank: int = 0,
    run_id: str = "run-a",
    last_seq: int = 0,
    last_seen_ns: int = 0,
    host: str = "host-b",
    ended_ns: int | None = None,
) -> StreamRecord:
    """One life of a rank."""
    return StreamRecord(
        uid=uid,
        stream_id=stream_id,
        run_id=run_id,
        info=RankInfo(rank, host, 4321, devices=[DeviceInfo(0, "H200", "GPU-1", 2**37)]),
        created_ns=1,
        last_seq=last_seq,
        last_seen_ns=last_seen_ns,
        summary=StreamSummary(),
        ended_ns=ended_ns,
        end_reason=None if ended_ns is None else "exit",
    )
