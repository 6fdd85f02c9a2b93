"""A holder in a report has the fields that its reader knows."""

from __future__ import annotations

from vramscope.holders.holder import HolderFound, SourceLine, StoreTarget, holder_report


def test_fields_of_a_report() -> None:
    line = SourceLine("train.py", 12, "main")
    holder = HolderFound("local", ["kept", "list of 40"], line, 3, True, line)
    holder.targets = [StoreTarget("train.py", "kept")]
    plain = {"file": "train.py", "line": 12, "function": "main"}
    assert holder_report(holder) == {
        "kind": "local",
        "chain": ["kept", "list of 40"],
        "frame": plain,
        "tensors": 3,
        "is_growing": True,
        "stored_at": plain,
        "limited_at": None,
    }


def test_what_is_not_known_is_nothing() -> None:
    report = holder_report(HolderFound("unknown"))
    assert (report["frame"], report["is_growing"], report["stored_at"]) == (None, None, None)
