"""The registry's way to the store: what is there at the start, and streams as they register."""

from __future__ import annotations

from vramscope_protocol.messages import Register
from vramscope_server.registry.registry import MAX_RUNS, Registry
from vramscope_server.store import runs
from vramscope_server.store.runs import StreamRecord
from vramscope_server.store.store import Store


async def load(store: Store, registry: Registry) -> None:
    """Fill the registry with the runs that were seen last."""
    registry.load(await store.read(lambda connection: runs.load_runs(connection, MAX_RUNS)))


async def register(
    store: Store, registry: Registry, message: Register, now_ns: int, owner: str = ""
) -> StreamRecord:
    """Store a stream and tell the registry; ``last_seq`` of the answer is what is committed.

    Args:
        message: who registers.
        now_ns: the server's clock.
        owner: whose token it came with.

    Raises:
        ProtocolError: the stream belongs to another run or rank, or they to somebody else; or
            the rank has a process that is there.
        StoreError: the database did not take it.
    """
    seat = registry.seat(message.run.id, message.rank.rank)
    stream = await store.register(message, now_ns, owner, seat)
    registry.registered(message.run, message.rank.started_ns or now_ns, stream)
    return stream
