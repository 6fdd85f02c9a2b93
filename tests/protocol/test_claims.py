"""Secrets are kept as hashes, and a proof is good for one report of one run."""

from __future__ import annotations

from vramscope_protocol.claims import hashed_secret, proof_by_hash, report_proof


def test_no_secret_has_no_hash_and_a_hash_does_not_tell_the_secret() -> None:
    assert hashed_secret("") == ""
    assert len(hashed_secret("a secret")) == 64
    assert "a secret" not in hashed_secret("a secret") != hashed_secret("another")


def test_who_keeps_the_hash_makes_the_same_proof() -> None:
    assert report_proof("a secret", "o1") == proof_by_hash(hashed_secret("a secret"), "o1")


def test_a_proof_is_good_for_one_report_of_one_run() -> None:
    proofs = {report_proof(secret, name) for secret in ("a", "b", "") for name in ("o1", "o2")}
    assert len(proofs) == 6
    assert {len(proof) for proof in proofs} == {64}
