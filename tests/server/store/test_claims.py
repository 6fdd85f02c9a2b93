"""Who came first holds a run and a stream; who comes after has to show that he belongs there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from tests.support.streams import START_NS, open_store, registration
from tests.support.wire_ooms import wire_oom
from vramscope_protocol.claims import hashed_secret, report_proof
from vramscope_protocol.errors import FORBIDDEN, PERMANENT, RANK_TAKEN, ProtocolError
from vramscope_protocol.messages import Register
from vramscope_server.store import claims, runs, tables
from vramscope_server.store.claims import RunClaim, Seat, claim_seat
from vramscope_server.store.store import Store

RUN = "run-a"
SECRET = "7c1f9be2"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    yield store
    store.close()


def let_in(store: Store, message: Register, owner: str = "one") -> runs.StreamRecord:
    return store.write_now(lambda c: runs.register(c, message, START_NS, owner))


def refusal(store: Store, message: Register, owner: str = "one") -> str:
    with pytest.raises(ProtocolError) as refused:
        let_in(store, message, owner)
    assert refused.value.code == FORBIDDEN
    return refused.value.message


def coming(
    stream: str = "stream-a", rank: int = 0, run_secret: str = "", seat_secret: str = ""
) -> Register:
    message = registration(stream, RUN, rank)
    message.run_secret, message.seat_secret = run_secret, seat_secret
    return message


def claim(store: Store) -> RunClaim | None:
    return store.read_now(lambda c: claims.claim_of(c, RUN))


def test_the_first_one_claims_a_run_for_its_token_and_its_launch(store: Store) -> None:
    assert claim(store) is None
    let_in(store, coming(run_secret="launch"))
    assert claim(store) == RunClaim("one", hashed_secret("launch"))
    let_in(store, coming("stream-b", 1, run_secret="launch"))


def test_another_token_is_refused_and_leaves_nothing_behind(store: Store) -> None:
    let_in(store, coming(run_secret="launch"))
    hostile = coming("stream-b", 1, run_secret="launch")
    hostile.run.name = "mine"
    assert "expected the token that run run-a was begun with" in refusal(store, hostile, "two")
    names = store.read_now(lambda c: c.execute(select(tables.runs.c.name)).scalars().all())
    assert names == ["training"]
    assert store.read_now(lambda c: runs.stream_ids(c, RUN, 1)) == []


@pytest.mark.parametrize("guessed", ["", "wrong", RUN])
def test_who_does_not_know_the_launch_is_refused(store: Store, guessed: str) -> None:
    let_in(store, coming(run_secret=SECRET))
    words = refusal(store, coming("stream-b", 1, run_secret=guessed))
    assert "does not know its secret" in words
    assert SECRET not in words
    assert hashed_secret(SECRET) not in words


def test_a_run_of_an_older_release_is_claimed_by_who_comes_next(store: Store) -> None:
    let_in(store, coming(), owner="")
    let_in(store, coming(run_secret="launch"))
    assert claim(store) == RunClaim("one", hashed_secret("launch"))
    assert refusal(store, coming("stream-b", 1, run_secret="launch"), "two")


def test_a_stream_is_gone_on_with_by_who_began_it(store: Store) -> None:
    first = let_in(store, coming(seat_secret="tree"))
    again = let_in(store, coming(seat_secret="tree"))
    assert (again.stream_id, again.secret) == (first.stream_id, hashed_secret("tree"))
    for guessed in ("", "another", "stream-a"):
        assert "expected the process that began" in refusal(store, coming(seat_secret=guessed))
    # Who reads the database learns neither secret.
    everything = store.read_now(
        lambda c: [
            str(row) for table in (tables.runs, tables.streams) for row in c.execute(select(table))
        ]
    )
    assert "tree" not in "".join(everything)


SITTING = Seat("stream-a", hashed_secret("tree"), "process 7 on host-b")


@pytest.mark.parametrize("guessed", ["", "another", "stream-a"])
def test_another_process_takes_no_seat_and_may_try_again(guessed: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        claim_seat(SITTING, coming("stream-b", seat_secret=guessed))
    assert refused.value.code == RANK_TAKEN
    assert RANK_TAKEN not in PERMANENT
    assert "process 7 on host-b is" in refused.value.message


def test_a_child_of_who_sits_there_takes_the_seat() -> None:
    claim_seat(SITTING, coming("stream-b", seat_secret="tree"))


def test_a_seat_that_is_free_or_ones_own_or_of_an_older_release_is_had() -> None:
    claim_seat(SITTING, coming("stream-a"))  # the stream is asked about by itself
    claim_seat(None, coming("stream-b"))
    claim_seat(SITTING._replace(secret=""), coming("stream-b"))


def test_who_does_not_belong_to_the_run_hears_nothing_of_who_sits_there(store: Store) -> None:
    let_in(store, coming(run_secret="launch"))
    for message, owner in ((coming("s", run_secret="launch"), "two"), (coming("s"), "one")):
        with pytest.raises(ProtocolError) as refused:
            store.write_now(
                lambda c, m=message, o=owner: runs.register(c, m, START_NS, o, SITTING)  # type: ignore[misc]
            )
        assert "host-b" not in refused.value.message


@pytest.mark.parametrize(
    ("held", "owner", "proof", "is_let_in"),
    [
        (RunClaim("one", hashed_secret("launch")), "one", report_proof("launch", "o1"), True),
        (RunClaim("one", hashed_secret("launch")), "two", report_proof("launch", "o1"), False),
        (RunClaim("one", hashed_secret("launch")), "one", report_proof("launch", "o2"), False),
        (RunClaim("one", hashed_secret("launch")), "one", report_proof("", "o1"), False),
        (RunClaim("one", hashed_secret("launch")), "one", "", False),
        (RunClaim("one", ""), "one", "", True),
        (RunClaim("", ""), "two", "", True),
    ],
)
def test_a_report_of_another_run_needs_its_token_and_a_proof(
    held: RunClaim, owner: str, proof: str, is_let_in: bool
) -> None:
    begin, _ = wire_oom()
    begin.proof = proof
    assert claims.may_deliver(held, begin, owner) is is_let_in
