"""What the server was asked to be: options checked once, limits that tests set to 1."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vramscope_protocol.codec import MAX_MESSAGE_BYTES
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError

DEFAULT_PORT: Final = 8470
MAX_PORT: Final = 65535
DEFAULT_SNAPSHOTS_GIB: Final = 16.0
MAX_SNAPSHOTS_GIB: Final = 1e6


@dataclass(frozen=True)
class Limits:
    """Every bound of the server app. What happens at each is said where it is enforced."""

    max_message_bytes: int = MAX_MESSAGE_BYTES
    """Largest websocket message of any peer."""
    max_body_bytes: int = 64 * 1024
    """Largest body of a REST request."""
    live_connections: int = 256
    live_subscriptions: int = 32
    """Per browser connection."""
    live_fields: int = 64
    """Per subscription."""
    live_queue_frames: int = 4096
    """Hard cap on frames that wait for one browser: reached once, the connection ends."""
    live_queue_bytes: int = 32 * 1024 * 1024
    live_peak_frames: int = 512
    """Above this for ``live_peak_s`` the connection ends too."""
    live_peak_s: float = 10.0
    live_close_s: float = 2.0
    """How long a closing browser connection may take to hand over its last frame."""
    machine_list_s: float = 10.0
    """How long listing the training processes of this machine may take."""
    machine_list_age_s: float = 2.0
    """How old a list may be that is given again."""
    machine_list_bytes: int = 4 * 1024 * 1024
    judge_interval_s: float = 2.0
    """Least time between two judgements of a run."""
    policy_interval_s: float = 1.0
    """Time between two decisions on policies."""
    ask_interval_s: float = 5.0
    """Before a run is asked a second time what grows in it; each time after takes twice as long."""
    snapshot_raw_bytes: int = 8 << 30
    """Largest pickle of one snapshot."""
    snapshot_wire_bytes: int = 1 << 30
    """The same, gzipped."""
    snapshot_upload_bytes: int = 1 << 30
    """Largest file that a person may put in."""
    snapshot_run_bytes: int = 4 << 30
    """What the snapshots of one run may take, gzipped: a new one is refused then."""
    snapshot_run_count: int = 1000
    """Snapshots of one run, and of no run, failed ones included: as many as are listed."""
    snapshot_total_bytes: int = 16 << 30
    """Bytes of all snapshots."""
    snapshot_retry_s: float = 2.0
    """Time between two tries to store a piece of a snapshot."""
    oom_rank_count: int = 32
    """Reports of running out of memory of one rank; then one between the first and the last
    few goes."""
    oom_run_count: int = 1024
    """The same of a run; then the oldest go."""
    oom_total_bytes: int = 1 << 30
    """Bytes of all reports, as stored; then the oldest go."""
    oom_partial_bytes: int = 64 << 20
    """Reports that are still coming, in memory; then one that came least lately begins anew."""
    map_bytes: int = 64 << 20
    """Memory maps kept, in all: the one that changed longest ago is forgotten first."""
    run_list_interval_s: float = 1.0
    run_interval_s: float = 0.5
    command_deadline_s: float = 3600.0
    """Longest deadline that may be asked for."""
    command_open: int = 64
    """Unfinished commands per run."""
    command_open_caller: int = 32
    """Of these, of one caller."""
    command_open_policies: int = 16
    """Of these, of all policies."""
    command_burst: int = 20
    """Commands that one caller may post at once; they come back at one per second."""
    command_grace_s: float = 5.0
    """How long after the deadline a rank that got the command may still answer."""
    command_run_s: float = 60.0
    """The same for a rank that said it is running the command."""
    command_prepare_s: float = 10.0
    """How long ranks may take to get ready for a step; those that are there stand still for less
    than that."""
    command_hold_s: float = 20.0
    """How long a rank that is ready stands still at most: far below the time after which NCCL
    gives up."""
    command_restart_s: float = 30.0
    """After a restart of the server: time for ranks to reconnect and resend receipts."""
    command_recent: int = 256
    """Finished commands kept in memory, for receipts that come late."""
    auth_failures: int = 10
    """Wrong tokens that one address may send at once; one more comes back every six seconds."""
    auth_addresses: int = 1024
    """Addresses whose failures are remembered; the oldest is forgotten first."""
    auth_cache_s: float = 5.0
    """How long a verified token is trusted without looking: a revocation takes that long."""
    session_s: float = 30 * 24 * 3600.0
    """How long a browser stays signed in."""
    frame_s: float = 12 * 3600.0
    """How long a page inside another page, such as a notebook, may be looked at."""
    stalled_close_s: float = 10.0
    """How long a connection that was closed may go without its peer taking a byte."""
    shutdown_s: int = 5
    """How long open requests may take to finish at shutdown."""


@dataclass(frozen=True)
class Settings:
    """Options of one server, checked.

    Raises:
        VramscopeError: ``bad_request``, with what was expected and what was given.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0 takes any free port."""
    database_url: str = ""
    """SQLAlchemy URL; empty is a SQLite file in the user's data folder."""
    token: str | None = None
    """Fixed token with all three scopes; without it one is made for this life of the server."""
    lost_after_s: float = 300.0
    idle_exit_s: float = 0.0
    """Exit after that long without an agent and without a browser; 0 never exits."""
    runtime_file: bool = True
    allow_hosts: tuple[str, ...] = ()
    """Further names under which a loopback server may be called, for a proxy in front of it."""
    allow_attach: bool = False
    """Show the training processes of this machine to whoever sits at it; loopback only."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.host.strip():
            raise VramscopeError(BAD_REQUEST, "--host: expected a host name or address, got ''")
        if not 0 <= self.port <= MAX_PORT:
            raise VramscopeError(
                BAD_REQUEST, f"--port: expected a port from 0 to {MAX_PORT}, got {self.port}"
            )
        if not self.lost_after_s > 0:
            raise VramscopeError(
                BAD_REQUEST, f"--lost-after-s: expected more than 0, got {self.lost_after_s:g}"
            )
        if not self.idle_exit_s >= 0:
            raise VramscopeError(
                BAD_REQUEST, f"--idle-exit-s: expected 0 or more, got {self.idle_exit_s:g}"
            )
        if self.token is not None and (not self.token or self.token != self.token.strip()):
            raise VramscopeError(
                BAD_REQUEST, "--token: expected at least one character and no space around it"
            )
        if not self.is_loopback and self.token is None:
            raise VramscopeError(
                BAD_REQUEST,
                f"refusing to listen on {self.host} without a token: give --token or "
                "VRAMSCOPE_TOKEN, or listen on 127.0.0.1",
            )
        if self.allow_attach and not self.is_loopback:
            raise VramscopeError(
                BAD_REQUEST,
                f"--allow-attach: expected a server of this machine only, got --host {self.host}; "
                "leave one of them out",
            )

    @property
    def is_loopback(self) -> bool:
        """Whether the server listens for this machine only."""
        return is_loopback_host(self.host)

    @property
    def is_reachable(self) -> bool:
        """Whether others may reach it: at its address, or through a proxy on this machine."""
        return not self.is_loopback or bool(self.allow_hosts)

    @property
    def is_found_by_jobs(self) -> bool:
        """Whether jobs of the same user find this server without being told its address."""
        return self.is_loopback and self.runtime_file

    @property
    def database(self) -> str:
        """SQLAlchemy URL of the database, with the default filled in."""
        return self.database_url or f"sqlite:///{data_folder(os.environ) / 'vramscope.db'}"


def snapshot_limits(total_gib: float) -> Limits:
    """Limits under which all snapshots take so much, and those of one run a quarter of it.

    Raises:
        VramscopeError: ``bad_request``.
    """
    if not 0 <= total_gib <= MAX_SNAPSHOTS_GIB:
        raise VramscopeError(
            BAD_REQUEST,
            f"--snapshots-gib: expected 0 to {MAX_SNAPSHOTS_GIB:g}, got {total_gib:g}",
        )
    total_bytes = int(total_gib * (1 << 30))
    return Limits(snapshot_total_bytes=total_bytes, snapshot_run_bytes=total_bytes // 4)


def is_loopback_host(host: str) -> bool:
    """Whether a host name or address means this machine only."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def data_folder(environ: Mapping[str, str]) -> Path:
    """``$XDG_DATA_HOME/vramscope``, else ``~/.local/share/vramscope``."""
    base = environ.get("XDG_DATA_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "share"
    return root / "vramscope"
