from __future__ import annotations

import pickle
from typing import Any

import pytest

from vramscope_analysis.snapshot import Limits, SnapshotError
from vramscope_analysis.snapshot.pickles.machine import Machine
from vramscope_analysis.snapshot.runs.run import Run

VALUES: list[Any] = [
    None, True, False, 0, 255, 256, 65535, 65536, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1,
    2**63, -(2**63), 2**200, 0.0, -2.5, 1e300, "", "é", "x" * 300, "\ud800", [], {}, (), (1,),
    (1, 2), (1, 2, 3), (1, 2, 3, 4), [[]], [1] * 2500, {str(at): at for at in range(2500)}, {5: 6},
]  # fmt: skip


def run(data: bytes, **limits: int) -> Any:
    return Machine(data, Limits(**limits)).run()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_of_every_kind(protocol: int) -> None:
    assert run(pickle.dumps(VALUES, protocol)) == VALUES
    for value in VALUES:
        got = run(pickle.dumps(value, protocol))
        assert got == value
        assert type(got) is type(value)


def test_opcodes_that_picklers_seldom_write() -> None:
    assert run(b"\x80\x04\x8b\x02\x00\x00\x00\x00\xff.") == -256
    assert run(b"\x80\x04\x8a\x00.") == 0
    assert run(b"\x80\x04\x8d\x01\x00\x00\x00\x00\x00\x00\x00a.") == "a"
    assert run(b"\x80\x04(K\x01K\x02t.") == (1, 2)
    assert run(b"\x80\x04}K\x01K\x02s.") == {1: 2}
    assert run(b"\x80\x02]q\x01K\x07a.") == [7]


def test_what_is_shared_stays_shared() -> None:
    inner: list[Any] = [1]
    got = run(pickle.dumps([inner, inner, {"a": inner}], 4))
    assert got[0] is got[1] is got[2]["a"]


def test_memo_indices_with_gaps() -> None:
    padding = b"K\x00" * 40
    data = b"\x80\x02(" + padding + b"\x58\x01\x00\x00\x00aq\x09h\x09t."
    assert run(data)[-2:] == ("a", "a")


def entries(count: int) -> list[dict[str, Any]]:
    return [{"action": "alloc", "addr": at, "size": 8 * at} for at in range(count)]


def test_runs_stand_for_dicts_in_lists() -> None:
    plain = entries(100)
    got = run(pickle.dumps(plain, 4))
    runs = [item for item in got if type(item) is Run]

    assert sum(item.count for item in runs) > 90
    assert [*got[: 100 - runs[0].count], *runs[0].dicts()] == plain
    assert Machine(pickle.dumps(plain, 4), Limits(), with_runs=False).run() == plain


def test_runs_become_dicts_in_anything_else() -> None:
    """A tuple of dicts under a list, and a list whose last dicts become a tuple."""
    plain = entries(60)
    body = pickle.dumps(plain, 4)[11:-1]
    items = body[body.index(b"(") + 1 : -1]
    in_tuple = b"\x80\x04](\x4eK\x01" + b"]\x94(" + items + b"te."
    assert run(in_tuple)[-1] == tuple(plain)
    pair_at_the_end = b"\x80\x04]\x94(" + items + b"\x86e."
    got = run(pair_at_the_end)
    assert got[-1] == (plain[-2], plain[-1])
    assert len(got) == 59


def test_a_dict_of_a_run_can_be_fetched() -> None:
    plain: list[Any] = entries(60)
    plain += [plain[40], {"first": plain[0], "some": plain[50]}]
    machine = Machine(pickle.dumps(plain, 4), Limits())
    got = machine.run()

    assert got[-2] == plain[40]
    assert got[-1] == {"first": plain[0], "some": plain[50]}


def test_containers_of_runs_that_are_shared_are_noticed() -> None:
    plain = {"a": [{"blocks": entries(30)}]}
    machine = Machine(pickle.dumps(plain, 4), Limits())
    machine.run()
    assert not machine.shares_runs

    shared = Machine(pickle.dumps({**plain, "b": plain["a"]}, 4), Limits())
    shared.run()
    assert shared.shares_runs


def test_frames_that_are_shared_are_not_taken_for_runs() -> None:
    frames = [{"name": "f", "line": 1}]
    machine = Machine(pickle.dumps([frames, frames, frames[0]], 4), Limits())
    machine.run()
    assert not machine.shares_runs


def test_opcodes_are_bounded() -> None:
    data = pickle.dumps([[at] for at in range(30_000)], 4)
    with pytest.raises(SnapshotError, match="too many opcodes"):
        run(data, opcodes=50_000)
    # Runs are not made of opcodes.
    run(pickle.dumps(entries(30_000), 4), opcodes=20_000)


def test_progress_is_reported() -> None:
    data = pickle.dumps([[at] for at in range(30_000)], 4)
    seen: list[int] = []
    Machine(data, Limits(), lambda done, size: seen.append(done)).run()
    assert seen == sorted(seen)
    assert len(seen) > 3
