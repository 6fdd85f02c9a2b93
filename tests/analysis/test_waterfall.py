"""The account of a device: known answers, and what holds whatever the readings say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vramscope_analysis.waterfall import (
    DEFINITIONS,
    PARTS,
    Account,
    Moment,
    Reading,
    account,
    divide,
)

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data/waterfall/vectors.json").read_text()
)
MOMENTS: tuple[Moment, ...] = ("instant", "end", "peak")
GIB = 1 << 30

sizes = st.one_of(st.none(), st.integers(-GIB, 200 * GIB), st.integers(-3, 40))
readings = st.builds(
    Reading,
    **{
        name: st.sampled_from([None, 0, 1, 2, 3]) if name == "peak_part" else sizes
        for name in Reading.__dataclass_fields__
    },
)


def known(parts: Account, names: tuple[str, ...]) -> list[int]:
    return [size for name in names if (size := parts[name]) is not None]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['name']}")
def test_known_answers(vector: dict[str, Any]) -> None:
    assert account(Reading(**vector["reading"]), vector["moment"]) == vector["bytes"]


def test_the_known_answers_show_every_part_and_every_moment() -> None:
    shown = {name for vector in VECTORS for name, size in vector["bytes"].items() if size}
    assert shown == set(DEFINITIONS)
    assert {vector["moment"] for vector in VECTORS} == set(MOMENTS)


@given(readings, st.sampled_from(MOMENTS))
def test_known_parts_are_never_negative_and_sum_up_to_their_whole(
    reading: Reading, moment: Moment
) -> None:
    parts = account(reading, moment)
    assert set(parts) == set(DEFINITIONS)
    assert all(size is None or size >= 0 for size in parts.values())
    for whole, children in PARTS.items():
        size = parts[whole]
        assert size is None or sum(known(parts, children)) == size
        if size is None:
            assert known(parts, children) == []


@given(readings, st.sampled_from(MOMENTS))
def test_what_was_not_measured_is_not_made_up(reading: Reading, moment: Moment) -> None:
    parts = account(reading, moment)
    if reading.process is None or reading.sample_reserved is None:
        assert parts["outside"] is None
    if reading.other is None:
        assert parts["other_processes"] is None
    for category in ("parameters", "buffers", "optimizer_state", "gradients"):
        measured = getattr(reading, category)
        if measured is None and category != "gradients":
            assert parts[category] is None
            assert parts["activations"] is None
        elif measured is not None and measured >= 0:
            assert (parts[category] or 0) <= max(measured, reading.gradients_kept or 0)


@given(readings)
def test_the_device_is_its_total_where_that_is_known(reading: Reading) -> None:
    parts = account(reading, "end")
    if reading.total is not None:
        assert parts["device"] == max(0, reading.total)


@st.composite
def truths(draw: st.DrawFn) -> tuple[Reading, Account]:
    """A device as it is, and what one look at it from every side reads."""
    size = st.integers(0, 10 * GIB)
    names = [name for children in PARTS.values() for name in children]
    truth: Account = {
        name: draw(size) for name in names if name not in (*PARTS, "cache_not_split", "not_split")
    }
    truth["cache_not_split"] = truth["not_split"] = 0
    for whole in ("allocated", "reserved", "device"):
        truth[whole] = sum(known(truth, PARTS[whole]))
    part = {name: truth[name] or 0 for name in truth}
    process = part["reserved"] + part["outside"]
    used = process + part["other_processes"] + part["unknown"]
    return Reading(
        total=part["device"],
        used=used,
        free=part["free"],
        process=process,
        other=part["other_processes"],
        sample_reserved=part["reserved"],
        reserved=part["reserved"],
        active=part["allocated"] + part["pending_free"],
        allocated=part["allocated"],
        parameters=part["parameters"],
        gradients=part["gradients"],
        optimizer_state=part["optimizer_state"],
        buffers=part["buffers"],
        gradients_kept=part["gradients"],
        returnable=part["returnable"],
        stranded=part["stranded"],
        private_pool=part["private_pool"],
    ), truth


@given(truths(), st.sampled_from(["end", "instant"]))
def test_readings_that_fit_together_give_the_truth(
    seen: tuple[Reading, Account], moment: Moment
) -> None:
    reading, truth = seen
    assert account(reading, moment) == truth


@given(sizes, st.lists(st.tuples(st.text("abc", min_size=1), sizes)))
def test_names_within_a_part_sum_up_to_it(
    whole: int | None, named: list[tuple[str, int | None]]
) -> None:
    shares = divide(whole, named)
    assert sum(share for _, share in shares) == max(0, whole or 0)
    assert all(share > 0 for _, share in shares)
    assert [name for name, _ in shares[:-1] if not name] == []


def test_what_nothing_explains_has_no_name() -> None:
    assert divide(100, [("context", 60), ("lost", None), ("NCCL", 30)]) == [
        ("context", 60),
        ("NCCL", 30),
        ("", 10),
    ]
    assert divide(50, [("context", 60), ("NCCL", 30)]) == [("context", 50)]
    assert divide(None, [("context", 60)]) == []


def test_half_the_model_is_half_of_pytorchs_part_and_the_same_outside() -> None:
    # As reported (Megatron-LM 150): by the driver's number alone, memory seems not to shrink.
    def of(model: int) -> Account:
        used = 300 + 2 * model
        reading = Reading(
            total=1000,
            used=used,
            free=1000 - used,
            process=used,
            other=0,
            sample_reserved=2 * model,
            reserved=2 * model,
            active=model,
            allocated=model,
            parameters=model,
            gradients=0,
            optimizer_state=0,
            buffers=0,
            gradients_kept=0,
        )
        return account(reading, "end")

    whole, half = of(200), of(100)
    assert (whole["parameters"], half["parameters"]) == (200, 100)
    assert whole["outside"] == half["outside"] == 300
