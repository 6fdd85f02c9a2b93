"""What agent and server say to each other: one struct a message, one union a direction.

Durable messages (``Batch``, ``Event``, ``CommandUpdate``, ``Goodbye``) carry ``seq``, which rises
by one per message of a stream. The server acknowledges a ``seq`` only when it is committed to the
store, the agent resends what is not acknowledged, and the server drops what it already has. A
jump in ``seq`` means that the agent dropped messages on purpose; ``Lost`` says which and why.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from vramscope_protocol.account import AgentAccount, MemoryPart, ProcessMemory
from vramscope_protocol.columns import TypeCode
from vramscope_protocol.commands import FINAL_STATES, CommandState, Receipt
from vramscope_protocol.integers import Count, Int64, Seq
from vramscope_protocol.user_commands import MAX_COMMANDS, UserCommand

BatchKind = Literal["sample", "step"]
SnapshotEncoding = Literal["gzip"]
SnapshotMode = Literal["segments", "state", "alloc", "all", "user"]
"""What was recorded: nothing, how (see the command ``history_start``), or what the job asked for
itself."""


class Message(Struct, tag_field="type", omit_defaults=True):
    """Base of every message: the tag is the snake-case name of the struct."""


class Field(Struct, frozen=True):
    """One column: its series name, its value type and its unit."""

    name: str
    code: TypeCode
    unit: str = ""


class DeviceInfo(Struct, omit_defaults=True):
    """One device that a rank uses. Sizes in bytes; ``limit_bytes`` is the process's own cap."""

    index: Count
    name: str
    uuid: str = ""
    total_bytes: Count | None = None
    limit_bytes: Count | None = None
    emulated: bool = False
    backend: str = ""
    """PyTorch's word for its kind: "xpu", "mps", ...; empty is "cuda"."""


class RunInfo(Struct, omit_defaults=True):
    """The training job. ``id`` is the same on every rank of one launch (see agent/identity.py)."""

    id: str
    name: str
    world_size: Count = 1
    emulated: bool = False
    user: str = ""
    script: str = ""
    """File name of the script, without its path and without its arguments (may hold secrets)."""


class RankInfo(Struct, omit_defaults=True):
    """One process of the job."""

    rank: Count
    host: str
    pid: Count
    local_rank: Count = 0
    started_ns: Int64 = 0
    devices: list[DeviceInfo] = field(default_factory=list[DeviceInfo])
    software: dict[str, str] = field(default_factory=dict[str, str])
    """Versions by name: vramscope, python, torch, cuda, driver."""
    allow: Literal["observe", "control"] = "control"
    """The agent's last word: ``observe`` refuses every command that needs the control right."""
    commands: list[str] = field(default_factory=list[str])
    """Names of the commands that this agent accepts."""
    user_commands: Annotated[list[UserCommand], Meta(max_length=MAX_COMMANDS)] = field(
        default_factory=list[UserCommand]
    )
    """Commands that the job itself declares; those it accepts are among ``commands`` as well."""
    steps_from_start: bool = False
    """Its steps are counted from the begin of training: the same number is the same step on all
    ranks of which this is true."""
    life: str = ""
    """Names the process: kept when it is attached to again, another one after a restart."""
    process_started_ns: Int64 = 0
    """When the process started, or 0; ``started_ns`` is when it was attached to."""
    restart_count: Count = 0
    """How often the launcher had started the ranks again when this process started."""
    max_restarts: Count = 0
    """How often it may; 0 is never or not known."""
    node_rank: Count | None = None
    launcher: str = ""
    """What gave the rank its number: "torchrun", "srun", "spawn", ...; empty without one."""
    job: str = ""
    """The scheduler's job in words for a person: "slurm 4711"."""


# ----------------------------------------------------------------------------- agent to server


class Hello(Message, tag="hello"):
    """First message of either side. Carries no secret, so that it can be logged."""

    protocol: int
    features: list[str] = field(default_factory=list[str])
    software: str = ""


class Auth(Message, tag="auth"):
    """The token, alone in its message so that nothing else has to be kept out of logs."""

    token: str


class Register(Message, tag="register"):
    """Which stream of which rank of which run follows on this connection.

    ``stream`` names one life of one process; sequence numbers start at 1 in each stream.
    """

    stream: str
    run: RunInfo
    rank: RankInfo
    first_seq: Seq = 1
    """Lowest sequence number that the agent can still send."""
    run_secret: Annotated[str, Meta(max_length=128)] = ""
    """What all ranks of the launch know and the run's id does not tell; nobody is shown it."""
    seat_secret: Annotated[str, Meta(max_length=128)] = ""
    """What this process, and those that it starts, know alone; nobody is shown it."""


class FieldTable(Message, tag="field_table"):
    """Names the columns of the batches that refer to ``table``. Sent again on each connection."""

    table: Count
    fields: list[Field]


class Batch(Message, tag="batch"):
    """``count`` consecutive rows of one kind; ``first_index`` counts rows of that kind from 0."""

    seq: Seq
    kind: BatchKind
    table: Count
    first_index: Count
    count: Count
    columns: bytes


class Event(Message, tag="event"):
    """Something that happened once: attach, exception, capture, user mark, ..."""

    seq: Seq
    time_ns: Int64
    kind: str
    step: Int64 | None = None
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict[str, Any])


class CommandUpdate(Message, tag="command_update"):
    """A command changed state on this rank; final states carry the receipt."""

    seq: Seq
    id: str
    state: CommandState
    time_ns: Int64
    receipt: Receipt | None = None
    at_step: Int64 | None = None
    """With ``prepared``: the step that it is prepared for. With ``refused``: that step is over, and
    this is no last word, because the same command may come again for a later one."""

    @property
    def is_last_word(self) -> bool:
        """Whether the command is over on this rank."""
        return self.state in FINAL_STATES and self.at_step is None


class Lost(Message, tag="lost"):
    """Totals of what this stream dropped so far, by reason. Cumulative, so it may be repeated."""

    samples: dict[str, Count] = field(default_factory=dict[str, Count])
    steps: dict[str, Count] = field(default_factory=dict[str, Count])
    messages: dict[str, Count] = field(default_factory=dict[str, Count])
    last_dropped_seq: Count = 0


class AgentStatus(Message, tag="agent_status"):
    """What watching costs, about once a second. Not durable: the next one replaces it."""

    rate_hz: float
    cost_fraction: float
    """CPU time of the agent's threads as a fraction of one core."""
    outbox_bytes: Count = 0
    spool_bytes: Count = 0
    guard_errors: Count = 0
    notes: list[str] = field(default_factory=list[str])
    """What is degraded, in words: "NVML not found", "sampling paused while ..."."""
    account: AgentAccount | None = None
    processes: list[ProcessMemory] = field(default_factory=list[ProcessMemory])
    """Processes on the device, this one included; empty where they are not known."""
    outside: list[MemoryPart] = field(default_factory=list[MemoryPart])
    """What this process uses outside of PyTorch's allocator, as far as it has a name."""


class MapFrame(Message, tag="map_frame"):
    """The segments and blocks of one device, whole or as what changed since frame ``base``.

    Not durable: frames that a slow connection cannot take are never made. The tables are packed by
    ``map_columns``. A segment that is named replaces what was known of it, blocks included.
    """

    number: Seq
    base: Count = 0
    """The frame that this one changes; 0 is none: the frame holds everything."""
    time_ns: Int64 = 0
    step: Int64 | None = None
    is_step_end: bool = False
    """Taken between two steps, by the training thread: frames then show the same moment of each."""
    rate_hz: float = 0.0
    """Looks a second at present; 0 is on request only."""
    took_us: Count = 0
    why_not: str = ""
    """Why there is no map, in words; then the frame is empty."""
    since_ns: Int64 = 0
    """Time of the first look, which ``first_ms`` of the blocks counts from."""
    device_index: Count = 0
    limit_bytes: Count | None = None
    """What the process may hold of the device: its own cap, else the size of the device."""
    device_free_bytes: Count | None = None
    segment_count: Count = 0
    segments: bytes = b""
    block_count: Count = 0
    blocks: bytes = b""
    gone: list[Int64] = field(default_factory=list[Int64])
    """Addresses of segments that are no more."""
    first_text: Count = 0
    texts: list[str] = field(default_factory=list[str])
    """Names of owners and stacks from number ``first_text`` on; sent once."""
    summary: str = ""
    """What is not shown block by block and why, in words."""


class SnapshotBegin(Message, tag="snapshot_begin"):
    """A snapshot follows, or goes on: the server answers from which byte on it wants it."""

    id: Annotated[str, Meta(max_length=128)]
    time_ns: Int64
    raw_bytes: Count
    """Size of the pickle."""
    wire_bytes: Count
    """Size of what travels: the pickle in ``encoding``."""
    sha256: Annotated[str, Meta(max_length=64)]
    """Of the pickle, in hexadecimal digits."""
    encoding: SnapshotEncoding = "gzip"
    step: Int64 | None = None
    device: Count = 0
    mode: SnapshotMode = "segments"
    stacks: bool = False
    """Whether Python stacks were recorded."""
    origin: Literal["command", "rule"] = "command"
    issued_by: str = ""
    """The command's id, or the rule."""
    steps: list[tuple[Int64, Int64]] = field(default_factory=list[tuple[int, int]])
    """Number and end (us since the epoch) of each step that ended while it was recorded."""


class SnapshotChunk(Message, tag="snapshot_chunk"):
    """A piece of what was begun on this connection. One is on its way at a time."""

    id: Annotated[str, Meta(max_length=128)]
    offset: Count
    data: bytes


class OomBegin(Message, tag="oom_begin"):
    """A report of running out of memory follows in chunks: a JSON object. It names whose it is, for
    a process that was killed cannot send it, and the next one on its machine does."""

    id: Annotated[str, Meta(max_length=128)]
    run: Annotated[str, Meta(max_length=128)]
    rank: Count
    time_ns: Int64
    wire_bytes: Count
    sha256: Annotated[str, Meta(max_length=64)]
    step: Int64 | None = None
    linked_to: Annotated[str, Meta(max_length=128)] = ""
    """The report of the rank that ran out of memory, if this one only was asked for its own."""
    proof: Annotated[str, Meta(max_length=64)] = ""
    """That it is of that run, where the stream is of another one (see ``claims.py``)."""


class Goodbye(Message, tag="goodbye"):
    """The stream ends on purpose; without it a silent rank becomes "lost"."""

    seq: Seq
    time_ns: Int64
    reason: Literal["exit", "detach", "exception"]
    exit_code: Int64 | None = None
    text: str = ""


# ----------------------------------------------------------------------------- server to agent


class Welcome(Message, tag="welcome"):
    """The stream is open. The agent resends everything after ``last_seq``."""

    protocol: int
    last_seq: Count
    features: list[str] = field(default_factory=list[str])
    software: str = ""
    max_message_bytes: int = 1 << 20
    reachable: bool = False
    """Whether others than this machine can reach the server."""


class Ack(Message, tag="ack"):
    """Everything up to and including ``seq`` is committed to the store."""

    seq: Count


class Command(Message, tag="command"):
    """Run ``name`` on this rank before ``deadline_s`` seconds have passed from receipt."""

    id: Annotated[str, Meta(max_length=128)]
    """The agent remembers it, to run a command that is sent twice only once."""
    name: Annotated[str, Meta(max_length=200)]
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    dry_run: bool = False
    deadline_s: float = 30.0
    issued_by: str = ""
    at_step: Int64 | None = None
    """Run it at the end of this step, if a ``decision`` says so: the rank answers ``prepared``
    while that step is still to come, and stands still at its end until it knows."""
    hold_s: float = 20.0
    """How long it stands still at most; undecided by then, nothing is done on any rank."""


class Decision(Message, tag="decision"):
    """What becomes of a command that was prepared, on all ranks alike; made once and kept."""

    id: Annotated[str, Meta(max_length=128)]
    at_step: Int64
    """The step it was prepared for: the same command may be prepared again for a later one."""
    run: bool
    """Whether it is run; else it is dropped."""
    reason: str = ""
    """Why it is not run, in words."""


class SnapshotAck(Message, tag="snapshot_ack"):
    """Everything of it before ``offset`` is there; or it is not wanted, and why."""

    id: Annotated[str, Meta(max_length=128)]
    offset: Count = 0
    refused: str = ""


class MapWanted(Message, tag="map_wanted"):
    """Somebody looks at the memory map: send frames for ``seconds``, ``full`` begins anew."""

    seconds: float
    full: bool = False


class Error(Message, tag="error"):
    """Why the server is about to close the connection."""

    code: str
    message: str
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


DurableMessage = Batch | Event | CommandUpdate | Goodbye
AgentMessage = (
    Hello
    | Auth
    | Register
    | FieldTable
    | Batch
    | Event
    | CommandUpdate
    | Lost
    | AgentStatus
    | MapFrame
    | SnapshotBegin
    | SnapshotChunk
    | OomBegin
    | Goodbye
)
ServerMessage = Welcome | Ack | Command | Decision | SnapshotAck | MapWanted | Error
