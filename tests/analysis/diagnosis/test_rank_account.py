"""What a rank used, as medians of its last steps."""

from __future__ import annotations

from tests.support.made_ranks import GIB, Column, made_rank
from vramscope_analysis.diagnosis.rank_account import Level, median_parts, rank_account
from vramscope_analysis.evidence.columns import UNKNOWN

COLUMNS: dict[str, Column] = {
    "step.peak_active_bytes": [70 * GIB] * 20 + [20 * GIB] * 25 + [30 * GIB] * 25,
    "step.peak_reserved_bytes": 40 * GIB,
    "inactive_split_bytes.all.current": [GIB] * 20 + [3 * GIB] * 50,
    "category.parameters_bytes": 4 * GIB,
    "category.gradients_bytes": 4 * GIB,
    "category.optimizer_state_bytes": 8 * GIB,
    "category.buffers_bytes": 0,
    "num_alloc_retries": [9] * 30 + [11] * 40,
}


def test_the_last_steps_after_warm_up() -> None:
    account = rank_account(made_rank(70, columns=COLUMNS, rank=3))
    assert account is not None
    assert account.rank == 3
    assert account.needed == Level(25 * GIB, 20 * GIB, 30 * GIB)
    assert account.cache == Level(15 * GIB, 20 * GIB, 10 * GIB)
    assert account.stranded_bytes == 3 * GIB
    assert (account.left_bytes, account.limit_bytes, account.flushes) == (50 * GIB, 80 * GIB, 2)
    assert account.parts == {
        "parameters": 4 * GIB,
        "gradients": 4 * GIB,
        "optimizer state": 8 * GIB,
        "buffers": 0,
        "activations": 9 * GIB,
    }


def test_what_is_not_known_is_left_out() -> None:
    columns: dict[str, Column] = {
        **COLUMNS,
        "category.gradients_bytes": UNKNOWN,
        "num_alloc_retries": UNKNOWN,
        "step.peak_reserved_bytes": UNKNOWN,
        "inactive_split_bytes.all.current": UNKNOWN,
    }
    outside = ({"name": "NCCL", "bytes": GIB},)
    account = rank_account(made_rank(70, columns=columns, outside=outside, total_bytes=None))
    assert account is not None
    assert (account.left_bytes, account.flushes) == (None, None)
    assert (account.cache, account.stranded_bytes) == (None, None)
    assert "activations" not in account.parts
    assert "gradients" not in account.parts
    assert account.parts["outside of PyTorch"] == GIB
    assert "other processes" not in account.parts


def test_too_few_steps_are_no_account() -> None:
    short = {"step.peak_active_bytes": 20 * GIB}
    assert rank_account(made_rank(40, columns=short)) is None
    assert rank_account(made_rank(70, columns={})) is None


def test_medians_are_of_parts_that_all_know() -> None:
    accounts = [
        rank_account(made_rank(70, columns={**COLUMNS, "category.parameters_bytes": size * GIB}))
        for size in (1, 2, 9)
    ]
    known = [account for account in accounts if account is not None]
    assert median_parts(known)["parameters"] == 2 * GIB
    bare = rank_account(made_rank(70, columns={"step.peak_active_bytes": GIB}))
    assert bare is not None
    assert median_parts([*known, bare]) == {}
    assert median_parts([]) == {}
