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
    store: Store, registry: Registry, message: Register, now_ns: int
) -> StreamRecord:
    """Store a stream and tell the registry; ``last_seq`` of the answer is what is committed.

    Raises:
        ProtocolError: the stream belongs to another run or rank.
        StoreError: the database did not take it.
    """
    stream = await store.register(message, now_ns)
    registry.registered(message.run, message.rank.started_ns or now_ns, stream)
    return stream
