"""By what an agent shows that it belongs to a run, and what a server keeps of that. Pure.

An agent sends secrets that no page shows; a server keeps their hashes. A report that somebody else
delivers carries a proof, which is good for that one report.
"""

from __future__ import annotations

import hashlib
import hmac


def hashed_secret(secret: str) -> str:
    """What is kept of a secret; empty for none."""
    return hashlib.sha256(secret.encode("utf-8", "backslashreplace")).hexdigest() if secret else ""


def report_proof(run_secret: str, report_id: str) -> str:
    """What shows that a report is of a run, whoever delivers it.

    Args:
        run_secret: of the run that the report is of.
        report_id: of the report.
    """
    return proof_by_hash(hashed_secret(run_secret), report_id)


def proof_by_hash(hashed: str, report_id: str) -> str:
    """The same for who has kept the hash of the secret alone.

    Args:
        hashed: as :func:`hashed_secret` makes it.
        report_id: of the report.
    """
    return hmac.digest(hashed.encode(), report_id.encode(), "sha256").hex()
