"""Which agents are connected, and the way to them."""

from __future__ import annotations

from vramscope_protocol.messages import Command, Decision, MapWanted
from vramscope_server.ingest.connection import AgentConnection


class AgentDirectory:
    """Open agent connections by stream and by rank. Lives on the event loop."""

    def __init__(self) -> None:
        self._by_stream: dict[str, AgentConnection] = {}
        self._by_rank: dict[tuple[str, int], AgentConnection] = {}

    def __len__(self) -> int:
        return len(self._by_stream)

    def add(self, connection: AgentConnection) -> AgentConnection | None:
        """Enter a connection; returns the one of the same stream that it replaces."""
        replaced = self._by_stream.get(connection.stream.uid)
        self._by_stream[connection.stream.uid] = connection
        current = self._by_rank.get(connection.key)
        # An older life of a rank may come back to deliver the rest; commands go to the newest.
        if current is None or current.stream.stream_id <= connection.stream.stream_id:
            self._by_rank[connection.key] = connection
        return replaced

    def remove(self, connection: AgentConnection) -> bool:
        """Take a connection out; ``False`` if another one had replaced it."""
        if self._by_stream.get(connection.stream.uid) is not connection:
            return False
        del self._by_stream[connection.stream.uid]
        if self._by_rank.get(connection.key) is connection:
            del self._by_rank[connection.key]
        return True

    def of_stream(self, uid: str) -> AgentConnection | None:
        """The connection of a stream."""
        return self._by_stream.get(uid)

    def connected(self, run_id: str, rank: int) -> bool:
        """Whether a command would find this rank."""
        return (run_id, rank) in self._by_rank

    def send_command(self, run_id: str, rank: int, command: Command) -> bool:
        """Queue a command for a rank; ``False`` if it is not connected or does not read."""
        connection = self._by_rank.get((run_id, rank))
        return connection is not None and connection.send_command(command)

    def send_decision(self, run_id: str, rank: int, decision: Decision) -> bool:
        """Queue a decision for a rank; ``False`` if it is not connected or does not read."""
        connection = self._by_rank.get((run_id, rank))
        return connection is not None and connection.send_decision(decision)

    def can_prepare(self, run_id: str, rank: int) -> bool | None:
        """Whether a rank prepares commands for a step; ``None`` if it is not connected."""
        connection = self._by_rank.get((run_id, rank))
        return None if connection is None else connection.can_prepare

    def life(self, run_id: str, rank: int) -> str | None:
        """Uid of the stream that commands for a rank go to; ``None`` if it is not connected."""
        connection = self._by_rank.get((run_id, rank))
        return None if connection is None else connection.stream.uid

    def want_map(self, run_id: str, rank: int, wanted: MapWanted) -> bool:
        """Ask a rank for its memory map; ``False`` if it is not connected or has none."""
        connection = self._by_rank.get((run_id, rank))
        return connection is not None and connection.want_map(wanted)
