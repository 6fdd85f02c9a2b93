"""Both sides of the agent connection, in every order right and wrong."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vramscope_protocol.codec import (
    MAX_MESSAGE_BYTES,
    decode_agent_message,
    decode_server_message,
    encode,
)
from vramscope_protocol.columns import encode_columns
from vramscope_protocol.errors import (
    AUTH_FAILED,
    BAD_MESSAGE,
    TOO_LARGE,
    UNEXPECTED_MESSAGE,
    VERSION_MISMATCH,
    ProtocolError,
)
from vramscope_protocol.messages import (
    Ack,
    AgentMessage,
    AgentStatus,
    Auth,
    Batch,
    Command,
    CommandUpdate,
    Error,
    Event,
    Field,
    FieldTable,
    Goodbye,
    Hello,
    Lost,
    RankInfo,
    Register,
    RunInfo,
    SnapshotAck,
    SnapshotBegin,
    SnapshotChunk,
    Welcome,
)
from vramscope_protocol.session import AgentSession, ServerSession, State
from vramscope_protocol.version import AGENT_FEATURES, PROTOCOL_VERSION

REGISTER = Register("stream", RunInfo("run", "name"), RankInfo(0, "host", 1))
TABLE = FieldTable(0, [Field("time_ns", "q"), Field("step", "q"), Field("x", "d")])
BODY = encode_columns([array("q", [1, 2]), array("q", [0, 0]), array("d", [0.5, 1])])
BATCH = Batch(1, "sample", 0, 0, 2, BODY)

OPENING: tuple[AgentMessage, ...] = (Hello(PROTOCOL_VERSION), Auth("secret"), REGISTER)
DATA: tuple[AgentMessage, ...] = (
    TABLE,
    Event(1, 1, "mark"),
    CommandUpdate(2, "c", "running", 1),
    Lost(),
    AgentStatus(10, 0.001),
    SnapshotBegin("s", 1, 300, 100, "ab" * 32),
    SnapshotChunk("s", 0, b"x"),
    Goodbye(3, 1, "exit"),
)


def server_in(state: State) -> ServerSession:
    session = ServerSession()
    if state is State.HELLO:
        return session
    session.receive(encode(OPENING[0]))
    if state is State.AUTH:
        return session
    session.receive(encode(OPENING[1]))
    session.authenticated()
    if state is State.REGISTER:
        return session
    session.receive(encode(OPENING[2]))
    session.welcome(0)
    if state is State.CLOSING:
        session.fail(ProtocolError(BAD_MESSAGE, "x"))
    return session


def agent_in(state: State) -> AgentSession:
    session = AgentSession("secret", REGISTER)
    if state is State.OPEN:
        session.receive(encode(Welcome(1, 0)))
    elif state is State.CLOSING:
        session.receive(encode(Error(AUTH_FAILED, "x")))
    assert session.state is state
    return session


def refused(receive: Callable[[bytes], object], frame: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as error:
        receive(frame)
    return error.value


# ------------------------------------------------------------------------- the two sides together


def test_opening_and_data_through_both_sides() -> None:
    agent = AgentSession("secret", REGISTER, "vramscope 9")
    server = ServerSession(max_message_bytes=1000)
    hello, auth, register = agent.opening_frames()

    states = [server.state]
    assert server.receive(hello) == Hello(PROTOCOL_VERSION, list(AGENT_FEATURES), "vramscope 9")
    states.append(server.state)
    assert server.receive(auth) == Auth("secret")
    states.append(server.state)  # the same, until the caller has looked the token up
    server.authenticated()
    states.append(server.state)
    assert server.receive(register) == REGISTER
    states.append(server.state)  # the same, until the caller has looked the stream up
    agent.receive(server.welcome(41, "vramscope 8"))
    states += [server.state, agent.state]
    assert [state.name for state in states] == [
        "HELLO",
        "AUTH",
        "AUTH",
        "REGISTER",
        "REGISTER",
        "OPEN",
        "OPEN",
    ]
    assert agent.last_acked_seq == 41
    assert agent.max_message_bytes == 1000
    assert agent.features == server.features == set(AGENT_FEATURES)

    assert server.receive(encode(TABLE)) == TABLE
    assert server.receive(encode(BATCH)) == BATCH
    agent.receive(server.ack(42))
    assert agent.last_acked_seq == 42
    command = Command("c", "stats")
    assert agent.receive(server.command(command)) == command
    ack = SnapshotAck("s", 7)
    assert agent.receive(server.snapshot_ack(ack)) == ack
    agent.receive(server.fail(ProtocolError(BAD_MESSAGE, "why")))
    assert (server.state, agent.state) == (State.CLOSING, State.CLOSING)


def test_only_auth_carries_the_token() -> None:
    frames = AgentSession("secret", REGISTER).opening_frames()
    assert [b"secret" in frame for frame in frames] == [False, True, False]
    assert "secret" not in str(decode_agent_message(frames[0]))


# --------------------------------------------------------------------------------- order, server


@pytest.mark.parametrize("state", [State.HELLO, State.AUTH, State.REGISTER, State.OPEN])
@pytest.mark.parametrize("message", [*OPENING, *DATA], ids=lambda m: type(m).__name__)
def test_server_accepts_only_what_the_state_allows(state: State, message: AgentMessage) -> None:
    session = server_in(state)
    allowed: dict[State, set[type]] = {
        State.HELLO: {Hello},
        State.AUTH: {Auth},
        State.REGISTER: {Register},
        State.OPEN: {type(data) for data in DATA},
    }
    if type(message) in allowed[state]:
        assert session.receive(encode(message)) == message
        return
    error = refused(session.receive, encode(message))
    assert error.code == UNEXPECTED_MESSAGE
    assert error.message == f"expected {state.value}, got {type(message).__name__.lower()}"


@pytest.mark.parametrize("message", [*OPENING, *DATA], ids=lambda m: type(m).__name__)
def test_server_accepts_nothing_after_it_failed(message: AgentMessage) -> None:
    error = refused(server_in(State.CLOSING).receive, encode(message))
    assert (error.code, error.message[:17]) == (UNEXPECTED_MESSAGE, "expected nothing,")


@pytest.mark.parametrize("state", [State.HELLO, State.AUTH, State.REGISTER, State.OPEN])
def test_server_ignores_unknown_types_in_every_state(state: State) -> None:
    session = server_in(state)
    assert session.receive(msgspec.msgpack.encode({"type": "future"})) is None
    assert session.state is state


def test_server_refuses_another_protocol_version() -> None:
    error = refused(ServerSession().receive, encode(Hello(PROTOCOL_VERSION + 1)))
    assert error.code == VERSION_MISMATCH
    assert "expected protocol 1, got 2" in error.message


def test_server_notes_only_features_of_both_sides() -> None:
    session = ServerSession()
    session.receive(encode(Hello(PROTOCOL_VERSION, ["steps", "teleport"])))
    assert session.features == {"steps"}


def test_server_enforces_its_own_size_limit() -> None:
    error = refused(ServerSession(max_message_bytes=10).receive, encode(Auth("x" * 10)))
    assert error.code == TOO_LARGE


def test_failure_frame_says_why() -> None:
    frame = ServerSession().fail(ProtocolError(AUTH_FAILED, "expected a known token"))
    assert decode_server_message(frame) == Error(AUTH_FAILED, "expected a known token")


# ---------------------------------------------------------------------------------- order, agent


def test_agent_waits_for_welcome() -> None:
    for early in (Ack(1), Command("c", "stats")):
        error = refused(agent_in(State.WELCOME).receive, encode(early))
        assert error.code == UNEXPECTED_MESSAGE
        assert error.message.startswith("expected welcome, got ")


def test_agent_refuses_a_second_welcome() -> None:
    error = refused(agent_in(State.OPEN).receive, encode(Welcome(1, 5)))
    assert error.message == "expected data, got welcome"


@pytest.mark.parametrize("state", [State.WELCOME, State.OPEN, State.CLOSING])
def test_agent_takes_an_error_at_any_time(state: State) -> None:
    session = agent_in(state)
    error = Error(AUTH_FAILED, "no")
    assert session.receive(encode(error)) == error
    assert session.state is State.CLOSING


@pytest.mark.parametrize("message", [Welcome(1, 0), Ack(1), Command("c", "stats")])
def test_agent_accepts_nothing_but_errors_while_closing(message: Welcome | Ack | Command) -> None:
    error = refused(agent_in(State.CLOSING).receive, encode(message))
    assert error.message.startswith("expected nothing, got ")


def test_agent_ignores_unknown_types() -> None:
    session = agent_in(State.OPEN)
    assert session.receive(msgspec.msgpack.encode({"type": "future"})) is None
    assert session.state is State.OPEN


def test_agent_refuses_garbage_and_text() -> None:
    for frame in (b"\xc1", "text", b"x" * (MAX_MESSAGE_BYTES + 1)):
        with pytest.raises(ProtocolError):
            agent_in(State.OPEN).receive(frame)


def test_acks_never_go_back() -> None:
    session = agent_in(State.OPEN)
    for seq in (3, 2, 7, 7):
        session.receive(encode(Ack(seq)))
    assert session.last_acked_seq == 7


def test_server_cannot_raise_the_agents_size_limit() -> None:
    session = agent_in(State.WELCOME)
    session.receive(encode(Welcome(1, 0, max_message_bytes=1 << 40)))
    assert session.max_message_bytes == MAX_MESSAGE_BYTES


# ------------------------------------------------------------------------------------ duplicates


def test_resent_messages_are_duplicates() -> None:
    session = ServerSession()
    session.welcome(last_seq=10)
    assert [session.is_duplicate(seq) for seq in (9, 10, 11, 11, 12)] == [
        True,
        True,
        False,
        True,
        False,
    ]


def test_dropped_messages_leave_a_gap_that_is_not_refilled() -> None:
    session = ServerSession()
    session.welcome(last_seq=0)
    assert not session.is_duplicate(1)
    assert not session.is_duplicate(5)  # 2 to 4 were dropped by the agent
    assert session.is_duplicate(3)
    assert not session.is_duplicate(6)


@given(st.lists(st.integers(1, 30), max_size=60), st.integers(0, 30))
def test_each_number_is_taken_at_most_once(seqs: list[int], last_seq: int) -> None:
    session = ServerSession()
    session.welcome(last_seq)
    taken = [seq for seq in seqs if not session.is_duplicate(seq)]
    assert taken == sorted(set(taken))
    assert all(seq > last_seq for seq in taken)


# -------------------------------------------------------------------------------------- any order


def code_of_refusal(session: ServerSession, message: AgentMessage) -> str:
    try:
        session.receive(encode(message))
    except ProtocolError as error:
        return error.code
    return ""


@given(st.lists(st.sampled_from([*OPENING, *DATA, BATCH]), max_size=12))
@settings(deadline=None)
def test_any_sequence_either_follows_the_protocol_or_is_refused(
    messages: list[AgentMessage],
) -> None:
    session = ServerSession()
    expected: list[type] = [Hello, Auth, Register]
    for message in messages:
        state = session.state
        if code := code_of_refusal(session, message):
            assert code == UNEXPECTED_MESSAGE
            assert session.state is state
            continue
        if expected:
            assert type(message) is expected.pop(0)
        else:
            assert not isinstance(message, (Hello, Auth, Register))
        if isinstance(message, Auth):
            session.authenticated()
        elif isinstance(message, Register):
            session.welcome(0)
