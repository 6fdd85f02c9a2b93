from __future__ import annotations

from pathlib import Path

from tests.support.streams import open_store
from vramscope_server.store import tokens


def test_a_token_is_found_by_its_secret_which_is_not_stored(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    secret, record = store.write_now(
        lambda c: tokens.create_token(c, "ci", ["view", "agent"], 5, expires_ns=9)
    )
    assert store.read_now(lambda c: tokens.find_token(c, secret)) == record
    assert record.scopes == {"view", "agent"}
    assert (record.created_ns, record.expires_ns, record.kind) == (5, 9, "token")
    assert store.read_now(lambda c: tokens.find_token(c, "other")) is None
    store.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert secret.encode() not in stored
    assert tokens.hash_token(secret).encode() in stored


def test_secrets_differ_and_can_be_given(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    made = {
        store.write_now(lambda c: tokens.create_token(c, "a", ["view"], 1))[0] for _ in range(3)
    }
    assert len(made) == 3
    assert min(map(len, made)) >= 43
    secret, _ = store.write_now(lambda c: tokens.create_token(c, "b", ["view"], 1, secret="given"))
    assert secret == "given"
    store.close()


def test_a_revoked_token_says_so_and_is_revoked_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    secret, record = store.write_now(lambda c: tokens.create_token(c, "a", ["view"], 1))
    assert store.write_now(lambda c: tokens.revoke_token(c, record.id, 7))
    assert not store.write_now(lambda c: tokens.revoke_token(c, record.id, 8))
    assert not store.write_now(lambda c: tokens.revoke_token(c, 999, 8))
    found = store.read_now(lambda c: tokens.find_token(c, secret))
    assert found is not None
    assert found.revoked_ns == 7
    store.close()


def test_sessions_are_no_part_of_the_list(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write_now(lambda c: tokens.create_token(c, "a", ["view"], 1))
    store.write_now(
        lambda c: tokens.create_token(c, "browser", ["view"], 1, kind="session", parent="a")
    )
    assert [t.name for t in store.read_now(tokens.list_tokens)] == ["a"]
    (session,) = store.read_now(lambda c: tokens.list_tokens(c, "session"))
    assert session.parent == "a"
    store.close()


def test_a_frame_is_of_one_run_and_is_forgotten_when_it_is_over(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    secret, made = store.write_now(
        lambda c: tokens.create_token(
            c, "f", ["view"], 1, expires_ns=50, kind="frame", parent="1", run_id="r1"
        )
    )
    assert store.read_now(lambda c: tokens.find_token(c, secret)) == made
    assert made.run_id == "r1"
    assert store.write_now(lambda c: tokens.forget_sessions(c, 49)) == 0
    assert store.write_now(lambda c: tokens.forget_sessions(c, 50)) == 1
    store.close()


def test_a_secret_is_never_taken_for_an_option() -> None:
    secrets = {tokens.new_secret() for _ in range(200)}
    assert len(secrets) == 200
    assert all(secret.startswith("vs_") and len(secret) > 40 for secret in secrets)
