"""Three kinds of fragmentation, told by where the free memory lies."""

from __future__ import annotations

import pytest

from tests.support.made_layouts import made_layout
from tests.support.made_moments import recorded
from vramscope_analysis.diagnosis.piece_shape import shape_of, shape_remedies
from vramscope_analysis.evidence.window_layout import window_layout


def test_blocks_that_stay_in_split_segments_are_static() -> None:
    shape = shape_of(made_layout("s1 f39", "s2 f38", "a4 f36", ("small", 0, "s1 f1")))
    assert shape is not None
    assert (shape.kind, shape.pool.pool) == ("static", "large")
    assert shape.words == (
        "Static: 78.0 MiB of 114 MiB free lie in segments kept by 3 blocks that stay (4.0 MiB, "
        "such as fc.weight); the largest piece is 39.0 MiB."
    )
    assert "before the first step" in shape_remedies(shape)[0].action


def test_pieces_between_blocks_that_come_and_go_are_a_mix_of_sizes() -> None:
    shape = shape_of(made_layout("a4 f36", "f20 a4 f16", "f30", "s1 f9"))
    assert shape is not None
    assert (shape.kind, shape.pool.stream) == ("size-mix", 0)
    assert shape.words == (
        "Size-mix: 111 MiB free are cut into 5 pieces by blocks of changing sizes; "
        "the largest is 36.0 MiB."
    )
    assert shape_remedies(shape) == ()


def test_what_other_streams_keep_are_stream_pools() -> None:
    shape = shape_of(
        made_layout(("large", 0, "s100 f10"), ("large", 64, "a1 f39"), ("large", 128, "f20"))
    )
    assert shape is not None
    assert (shape.kind, shape.pool.stream) == ("stream pools", 64)
    assert shape.words == (
        "Stream pools: 59.0 MiB of 69.0 MiB free belong to other streams than the default stream, "
        "which has most in use; 39.0 MiB to stream 0x40. Streams share nothing."
    )
    assert "fewer streams" in shape_remedies(shape)[0].action


def test_a_private_pool_makes_no_kind() -> None:
    assert shape_of(made_layout(("private", 0, "f40"), "a4")) is None
    assert shape_remedies(None) == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("streams__default", "stream pools"),
        ("streams__limited", "stream pools"),
        ("streams__expandable_limited", "stream pools"),
        ("unet__split64", "size-mix"),
        ("checkpointing__default", "size-mix"),
        ("varlen__expandable", "size-mix"),
    ],
)
def test_recorded_jobs(name: str, kind: str) -> None:
    shape = shape_of(window_layout(recorded(name)))
    assert shape is not None
    assert shape.kind == kind
