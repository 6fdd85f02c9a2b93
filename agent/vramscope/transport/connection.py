"""One websocket to the server: opened, written by the transport, read by its own thread."""

from __future__ import annotations

import encodings.ascii
import encodings.idna
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from websockets.sync.client import ClientConnection, connect

from vramscope._version import __version__
from vramscope.guard import guarded
from vramscope.transport.address import ServerAddress
from vramscope.transport.failure import CONVERSATION_ERRORS, Refused
from vramscope.transport.limits import ConnectionLimits
from vramscope_protocol.codec import MAX_MESSAGE_BYTES
from vramscope_protocol.errors import RATE_LIMITED, ProtocolError
from vramscope_protocol.messages import Error, ServerMessage
from vramscope_protocol.session import AgentSession

# Host names and headers go through them. They are imported at first use, which may be a last
# delivery at the very end of the interpreter, when nothing can be imported any more, or while the
# job forks a child, in which the module would stay half imported.
_CODECS: Final = (encodings.idna, encodings.ascii)

_COST_INTERVAL_S: Final = 1.0


def _silent_logger() -> logging.Logger:
    # Outside the hierarchy: a job that logs at DEBUG must not find every frame in its own log.
    logger = logging.Logger("vramscope.websockets")
    logger.disabled = True
    return logger


_LOGGER: Final = _silent_logger()


class Connection:
    """An open connection, as a context manager; leaving it closes.

    Args:
        address: the server.
        session: protocol state of this connection.
        on_message: called on the receiver thread with everything but errors.
        on_closed: called on the receiver thread when nothing more will come.
        limits: bounds.
    """

    def __init__(
        self,
        address: ServerAddress,
        session: AgentSession,
        on_message: Callable[[ServerMessage], None],
        on_closed: Callable[[], None],
        limits: ConnectionLimits,
    ) -> None:
        self.error: BaseException | None = None
        """Why the receiver ended; set before ``on_closed`` is called."""
        self.is_closed = False
        self.sent_bytes = 0
        self._session = session
        self._on_message = on_message
        self._on_closed = on_closed
        self._limits = limits
        self._window_started_s = 0.0
        self._window_frames = 0
        self._receiver_cpu_ns = 0
        self._reader_cpu_ns = 0
        self._cost_since_s = time.monotonic()
        self._cost_since_cpu_ns = 0
        plain = socket.create_connection((address.host, address.port), limits.open_timeout_s)
        # A second handle, so that whoever is blocked on the first can be set free (abort).
        self._handle = plain.dup()
        try:
            _bound_writes(plain, limits.send_timeout_s)
            plain.settimeout(None)
            self._connect = connect(
                address.agent_url,
                sock=plain,
                compression=None,
                open_timeout=limits.open_timeout_s,
                close_timeout=limits.close_timeout_s,
                # Its keepalive draws from the global random module, which would change the
                # job's own random numbers. Acknowledgements show that the server lives.
                ping_interval=None,
                max_size=MAX_MESSAGE_BYTES,
                user_agent_header=f"vramscope/{__version__}",
                logger=_LOGGER,
            )
            self._websocket: ClientConnection = self._connect.__enter__()
            self._receiver = threading.Thread(
                target=self._receive, name="vramscope-receiver", daemon=True
            )
            self._receiver.start()
        except BaseException:
            self.abort()
            self._handle.close()
            plain.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._measure_reader()  # the last chance to ask: the threads end with the connection
        try:
            self._connect.__exit__(kind, error, trace)
        finally:
            self._handle.close()
            self._receiver.join(self._limits.close_timeout_s)

    def send(self, frame: bytes) -> None:
        """Send one binary frame.

        Raises:
            websockets.ConnectionClosed: the connection is over or the write timed out.
        """
        self._websocket.send(frame)
        self.sent_bytes += len(frame)

    def abort(self) -> None:
        """End the connection at once, whichever thread is blocked on it. Any thread."""
        try:
            self._handle.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it was over already

    def cpu_ns(self) -> int:
        """CPU time of the threads that read this connection, as last measured. Any thread."""
        return self._receiver_cpu_ns + self._reader_cpu_ns

    def check_cost(self) -> None:
        """Measure the CPU time, at most once a second.

        Raises:
            ProtocolError: the server makes this process work more than an honest one would;
                pings and empty fragments never become messages that could be counted.
        """
        elapsed_s = time.monotonic() - self._cost_since_s
        if elapsed_s < _COST_INTERVAL_S:
            return
        self._measure_reader()
        spent_s = (self.cpu_ns() - self._cost_since_cpu_ns) / 1e9
        self._cost_since_s += elapsed_s
        self._cost_since_cpu_ns = self.cpu_ns()
        if spent_s > self._limits.max_cpu_fraction * elapsed_s:
            raise ProtocolError(
                RATE_LIMITED,
                f"expected reading to take {self._limits.max_cpu_fraction:.0%} of a core at most, "
                f"it took {spent_s / elapsed_s:.0%}",
            )

    def _measure_reader(self) -> None:
        reader = getattr(self._websocket, "recv_events_thread", None)
        reader_cpu_ns = _thread_cpu_ns(getattr(reader, "native_id", None))
        self._reader_cpu_ns = max(self._reader_cpu_ns, reader_cpu_ns)

    def forget_after_fork(self) -> None:
        """Close this process's copies of the socket, which the parent goes on using."""
        self._handle.close()
        copy = getattr(self._websocket, "socket", None)
        if copy is not None:
            copy.close()

    def _receive(self) -> None:
        try:
            with guarded("transport receiver"):
                self._receive_until_closed()
        finally:
            self.is_closed = True
            self._on_closed()

    def _receive_until_closed(self) -> None:
        try:
            while True:
                frame = self._websocket.recv()
                self._check_rate()
                message = self._session.receive(frame)
                if isinstance(message, Error):
                    raise Refused(message.code, message.message)
                if message is not None:
                    self._on_message(message)
                self._receiver_cpu_ns = time.thread_time_ns()
        except CONVERSATION_ERRORS as error:
            self.error = error
            if isinstance(error, ProtocolError):
                self._websocket.close(error.close_code, error.message[:100])

    def _check_rate(self) -> None:
        now_s = time.monotonic()
        if now_s - self._window_started_s >= 1.0:
            self._window_started_s = now_s
            self._window_frames = 0
        self._window_frames += 1
        if self._window_frames > self._limits.max_frames_per_s:
            raise ProtocolError(
                RATE_LIMITED,
                f"expected at most {self._limits.max_frames_per_s} messages a second, got more",
            )


def _bound_writes(plain: socket.socket, timeout_s: float) -> None:
    """Let the kernel end a write to a peer that does not read: the library waits for ever."""
    timeval = struct.pack("@ll", int(timeout_s), int(timeout_s % 1 * 1e6))
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval)


def _thread_cpu_ns(native_id: int | None) -> int:
    """CPU time of another thread, 0 when it is gone or the kernel does not say."""
    if native_id is None:
        return 0
    try:
        # Not through Python's files: those take three times as long, once a second.
        descriptor = os.open(f"/proc/self/task/{native_id}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(descriptor, 256)
        finally:
            os.close(descriptor)
        return int(text.split()[0])
    except (OSError, ValueError, IndexError):
        return 0
