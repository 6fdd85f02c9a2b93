from __future__ import annotations

from vramscope_analysis.evidence.oom_entries import oom_entries


def test_known_keys_have_their_type_and_others_are_kept() -> None:
    (entry,) = oom_entries(
        [
            {
                "bytes": -5,
                "tensor": 7,
                "own": "yes",
                "held_by": ["a", 3],
                "holder": {"kind": "local", "frame": {"file": "a.py", "line": "x"}, "chain": 5},
                "later": {"a": 1},
            }
        ]
    )
    assert entry == {
        "bytes": None,
        "tensor": "",
        "own": False,
        "held_by": ["a", ""],
        "holder": {"kind": "local", "frame": {"file": "a.py", "line": 0}, "chain": []},
        "later": {"a": 1},
    }


def test_frames_without_a_file_are_left_out() -> None:
    (thread,) = oom_entries([{"frames": [{"file": 5}, {"file": "a.py", "line": 3}, 7]}])
    assert thread["frames"] == [{"file": "a.py", "line": 3}]


def test_what_is_no_list_of_objects_is_none() -> None:
    assert oom_entries("x") == oom_entries([1, "x", None]) == ()
