"""Policies are made, changed, switched and deleted, each time with a line in the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.support.made_policies import firing, policy_body
from tests.support.streams import open_store
from vramscope_protocol.errors import VramscopeError
from vramscope_server.policies import book as book_module
from vramscope_server.policies.book import Author, PolicyBook
from vramscope_server.store import audit, policies
from vramscope_server.store.store import Store

ME = Author("me", "browser", "10.0.0.1")


def with_book(folder: Path, act: Callable[[PolicyBook, Store], Awaitable[Any]]) -> Any:
    """What ``act`` does with a book that was opened anew."""
    store = open_store(folder)

    async def run() -> Any:
        book = PolicyBook(store, clock_ns=lambda: 77)
        await book.start()
        return await act(book, store)

    try:
        return asyncio.run(run())
    finally:
        store.close()


def test_what_is_made_survives_a_restart(tmp_path: Path) -> None:
    async def make(book: PolicyBook, store: Store) -> Any:
        record = await book.create(policy_body(is_on=True), ME)
        assert (record.is_on, record.created_by, record.created_ns) == (True, "me", 77)
        return record

    async def look(book: PolicyBook, store: Store) -> Any:
        return book.all()

    made = with_book(tmp_path, make)
    assert with_book(tmp_path, look) == [made]


def test_every_change_is_in_the_audit_log(tmp_path: Path) -> None:
    async def change(book: PolicyBook, store: Store) -> Any:
        record = await book.create(policy_body(), ME)
        await book.switch(record.id, True, ME)
        await book.change(record.id, policy_body(name="other", run="train"), ME)
        await book.switch(record.id, False, ME)
        await book.delete(record.id, ME)
        assert book.all() == []
        return record.id, await store.read(audit.list_audit)

    policy_id, rows = with_book(tmp_path, change)
    assert [row["name"] for row in rows] == [
        "policy_delete", "policy_off", "policy_change", "policy_on", "policy_create",
    ]  # fmt: skip
    assert {row["command_id"] for row in rows} == {f"policy:{policy_id}"}
    assert {(row["who"], row["origin"], row["address"]) for row in rows} == {
        ("me", "browser", "10.0.0.1")
    }
    assert [row["params"]["is_on"] for row in rows] == [False, False, False, True, False]
    assert (rows[2]["run"], rows[2]["params"]["name"]) == ("train", "other")


def test_a_change_begins_anew_and_says_so_to_whoever_watches(tmp_path: Path) -> None:
    async def change(book: PolicyBook, store: Store) -> None:
        record = await book.create(policy_body(is_on=True), ME)
        record.failures, record.fired, record.last_fired_ns = 2, 5, {"r1": 3}
        version = book.version
        changed = await book.change(record.id, policy_body(every_s=99, is_on=True), ME)
        assert book.version != version
        assert book.get(record.id) is changed is not record
        assert (changed.failures, changed.fired, changed.last_fired_ns) == (0, 5, {"r1": 3})

    with_book(tmp_path, change)


def test_a_name_stands_for_one_policy(tmp_path: Path) -> None:
    async def act(book: PolicyBook, store: Store) -> None:
        first = await book.create(policy_body(), ME)
        second = await book.create(policy_body(name="second"), ME)
        for call in (
            book.create(policy_body(), ME),
            book.change(second.id, policy_body(), ME),
        ):
            with pytest.raises(VramscopeError, match="there is a policy named 'tidy up'") as caught:
                await call
            assert caught.value.code == "conflict"
        await book.change(first.id, policy_body(every_s=11), ME)  # its own name is its own

    with_book(tmp_path, act)


def test_there_are_not_more_than_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "MOST_POLICIES", 2)

    async def act(book: PolicyBook, store: Store) -> None:
        made = await asyncio.gather(
            *(book.create(policy_body(name=f"n{i}"), ME) for i in range(3)), return_exceptions=True
        )
        assert sum(isinstance(each, VramscopeError) for each in made) == 1
        assert len(book.all()) == 2

    with_book(tmp_path, act)


def test_one_that_is_unknown(tmp_path: Path) -> None:
    async def act(book: PolicyBook, store: Store) -> None:
        assert book.find("x") is None
        for call in (
            book.delete("x", ME),
            book.switch("x", True, ME),
            book.change("x", policy_body(), ME),
        ):
            with pytest.raises(VramscopeError, match="no policy with the id 'x'"):
                await call

    with_book(tmp_path, act)


def test_one_that_only_fails_is_switched_off_with_the_reason(tmp_path: Path) -> None:
    async def act(book: PolicyBook, store: Store) -> Any:
        record = await book.create(policy_body(is_on=True), ME)
        await book.give_up(record, "it broke")
        assert (record.is_on, record.off_reason) == (False, "it broke")
        again = await book.switch(record.id, True, ME)
        assert again.off_reason == ""
        await book.give_up(record, "too late")  # somebody has switched it on meanwhile
        assert book.get(record.id).is_on
        return await store.read(audit.list_audit)

    rows = with_book(tmp_path, act)
    given_up = [row for row in rows if row["name"] == "policy_off"]
    assert [(row["who"], row["origin"], row["result"]) for row in given_up] == [
        ("vramscope", "server", "it broke")
    ]


def test_what_is_not_stored_does_not_hold(tmp_path: Path) -> None:
    async def act(book: PolicyBook, store: Store) -> None:
        record = await book.create(policy_body(), ME)

        async def refuse(_function: Any) -> None:
            raise VramscopeError("internal", "the disk is full")

        store.write = refuse  # type: ignore[assignment]
        for call in (
            book.create(policy_body(name="b"), ME),
            book.switch(record.id, True, ME),
            book.delete(record.id, ME),
        ):
            with pytest.raises(VramscopeError, match="disk is full"):
                await call
        assert book.all() == [record]
        assert not record.is_on

    with_book(tmp_path, act)


def with_two_books(folder: Path, act: Callable[[PolicyBook, PolicyBook], Awaitable[Any]]) -> Any:
    """What ``act`` does with the books of two servers that share a database."""
    stores = open_store(folder), open_store(folder)

    async def run() -> Any:
        books = [PolicyBook(store) for store in stores]
        for book in books:
            await book.start()
        return await act(*books)

    try:
        return asyncio.run(run())
    finally:
        for store in stores:
            store.close()


def test_what_another_server_has_changed_is_taken_up(tmp_path: Path) -> None:
    async def change(here: PolicyBook, there: PolicyBook) -> None:
        made = await here.create(policy_body(is_on=True), ME)
        kept = await here.create(policy_body(name="kept", is_on=True), ME)
        await there.refresh()
        assert there.all() == [made, kept]
        seen, version = there.find(kept.id), there.version
        await here.switch(made.id, False, ME)
        await there.refresh()
        assert [record.is_on for record in there.all()] == [False, True]
        # What nobody has changed goes on: it is watched since when it was met.
        assert there.find(kept.id) is seen
        assert there.version > version
        await here.delete(made.id, ME)
        await there.refresh()
        assert there.all() == [kept]

    with_two_books(tmp_path, change)


def test_nothing_is_new_where_nothing_was_changed(tmp_path: Path) -> None:
    async def look(here: PolicyBook, there: PolicyBook) -> None:
        await here.create(policy_body(), ME)
        version = here.version
        await here.refresh()
        assert here.version == version

    with_two_books(tmp_path, look)


def test_a_change_goes_out_from_what_the_other_server_has_made_of_it(tmp_path: Path) -> None:
    async def change(here: PolicyBook, there: PolicyBook) -> None:
        made = await here.create(policy_body(), ME)
        with pytest.raises(VramscopeError, match="there is a policy named"):
            await there.create(policy_body(), ME)
        await there.switch(made.id, True, ME)
        await there.delete(made.id, ME)
        with pytest.raises(VramscopeError, match="no policy"):
            await here.switch(made.id, True, ME)

    with_two_books(tmp_path, change)


def test_it_acts_not_more_often_because_there_are_two_servers(tmp_path: Path) -> None:
    async def act(here: PolicyBook, there: PolicyBook) -> None:
        made = await here.create(policy_body(is_on=True), ME)
        await there.refresh()
        watched = there.get(made.id)
        made.fired = 1

        def write(connection: Connection) -> None:
            policies.add_firing(connection, firing(number=99, policy_id=made.id))
            policies.set_counts(connection, made.id, 1, 0)

        await here._store.write(write)
        await there.refresh()
        assert there.get(made.id) is watched
        assert (watched.fired, watched.last_fired_ns) == (1, {"r1": 99})

    with_two_books(tmp_path, act)
