from __future__ import annotations

import pytest

from tests.support.fake_streams import stream_record
from tests.support.ingest_bench import RecordingNeighbours
from tests.support.streams import FIELDS, START_NS, made_batches, made_columns
from vramscope_protocol.codec import encode
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import (
    AgentMessage,
    AgentStatus,
    Auth,
    CommandUpdate,
    Event,
    FieldTable,
    Goodbye,
    Hello,
    Lost,
    Register,
    RunInfo,
)
from vramscope_protocol.session import ServerSession
from vramscope_server.ingest.intake import MAX_FIELD_TABLES, Intake
from vramscope_server.registry.registry import Registry
from vramscope_server.rows import Rows
from vramscope_server.store.submission import Submission


class Bench:
    def __init__(self, last_seq: int = 0) -> None:
        self.neighbours = RecordingNeighbours()
        self.registry = Registry(lambda: 50, 300.0, "host-a", lambda pid: True)
        stream = stream_record(last_seq=last_seq)
        stream.epoch = 3
        self.registry.registered(RunInfo("run-a", "n"), 1, stream)
        self.session = ServerSession()
        register = Register("stream-a", RunInfo("run-a", "n"), stream.info)
        for message in (Hello(1), Auth("t"), register):
            self.session.receive(encode(message))
            if isinstance(message, Auth):
                self.session.authenticated()
        self.session.welcome(last_seq)
        self.intake = Intake(
            stream, self.session, self.registry, self.neighbours, self.neighbours, lambda: 50
        )
        self.take(FieldTable(1, FIELDS))

    def take(self, message: AgentMessage) -> Submission | None:
        received = self.session.receive(encode(message))
        assert received is not None
        return self.intake.take(received)


def test_a_batch_is_published_and_handed_on_decoded() -> None:
    bench = Bench()
    columns = made_columns(10)
    (batch,) = made_batches(columns)
    submission = bench.take(batch)
    assert submission is not None
    assert isinstance(submission.content, Rows)
    assert submission.content.time_ns.tolist() == columns["time_ns"].tolist()
    assert (submission.stream, submission.seq, submission.epoch) == ("stream-a", 1, 3)
    assert submission.size_bytes > len(batch.columns)
    assert bench.neighbours.samples == [submission.content]
    assert bench.take(batch) is None  # the same again
    assert len(bench.neighbours.samples) == 1


def test_steps_go_their_own_way() -> None:
    bench = Bench()
    (batch,) = made_batches(made_columns(10), kind="step")
    bench.take(batch)
    assert (len(bench.neighbours.steps), len(bench.neighbours.samples)) == (1, 0)


def test_what_another_connection_brought_before_is_stored_but_not_published() -> None:
    bench = Bench()
    assert bench.registry.take_message("stream-a", 4)
    submission = bench.take(Event(3, START_NS, "mark"))
    assert submission is not None  # only the writer knows whether it has it
    assert bench.neighbours.events == []
    bench.take(CommandUpdate(4, "c", "done", 1))
    assert bench.neighbours.updates == []
    bench.take(Event(5, START_NS, "mark"))
    assert len(bench.neighbours.events) == 1


def test_messages_that_are_not_acked() -> None:
    bench = Bench()
    assert bench.take(AgentStatus(10.0, 0.01)) is None
    assert bench.neighbours.statuses[0]["cost_fraction"] == 0.01
    submission = bench.take(Lost(samples={"full": 2}))
    assert submission is not None
    assert submission.seq == 0


def test_a_goodbye_ends_the_rank() -> None:
    bench = Bench()
    bench.take(Goodbye(1, 99, "exit", 0))
    run = bench.registry.run("run-a")
    assert run is not None
    assert run["state"] == "ended"


@pytest.mark.parametrize(
    "message",
    [
        Event(1, START_NS, "mark", None, "x" * 90_000),
        Event(1, START_NS, "mark", data={"stacks": ["x" * 90_000]}),
        CommandUpdate(1, "c-1", "done", START_NS, Receipt("done", result="x" * 90_000)),
        Goodbye(1, START_NS, "exception", text="x" * 90_000),
        Lost(samples={"x" * 500 + str(n): 1 for n in range(60)}),
    ],
    ids=["text", "data", "receipt", "goodbye", "reasons"],
)
def test_what_a_message_holds_counts_against_the_queue(message: AgentMessage) -> None:
    submission = Bench().take(message)
    assert submission is not None
    assert submission.size_bytes > 30_000


def test_field_tables_are_bounded() -> None:
    bench = Bench()
    for number in range(2, MAX_FIELD_TABLES + 1):
        bench.take(FieldTable(number, FIELDS))
    bench.take(FieldTable(1, FIELDS[:3]))  # one that is known may be sent again
    with pytest.raises(ProtocolError):
        bench.take(FieldTable(1000, FIELDS))
