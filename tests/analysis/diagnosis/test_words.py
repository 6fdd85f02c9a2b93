"""Numbers are written as the page writes them."""

from __future__ import annotations

import math

import pytest

from vramscope_analysis.diagnosis.words import (
    GIB,
    KIB,
    MAX_SENTENCE,
    MIB,
    count_text,
    duration_range,
    duration_text,
    fitting,
    place_text,
    rate_text,
    share_text,
    size_text,
)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (26.2 * GIB, "26.2 GiB"),
        (1234.5 * GIB, "1,234.5 GiB"),
        (198 * MIB, "198 MiB"),
        (3.14 * MIB, "3.1 MiB"),
        (-3.14 * MIB, "−3.1 MiB"),
        (64 * KIB, "64 KiB"),
        (512, "512 bytes"),
        (0, "0 bytes"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_a_size_has_the_unit_that_suits_it(size_bytes: float | None, text: str) -> None:
    assert size_text(size_bytes) == text


def test_a_rate_is_told_in_mib_from_a_tenth_on() -> None:
    assert rate_text(3.1 * MIB) == "3.1 MiB per step"
    assert rate_text(0.4 * MIB) == "0.4 MiB per step"
    assert rate_text(64 * KIB) == "64 KiB per step"
    assert rate_text(2 * GIB, "evaluation") == "2.0 GiB per evaluation"


def test_what_is_counted_is_in_the_plural_unless_it_is_one() -> None:
    assert count_text(1240, "step") == "1,240 steps"
    assert count_text(1, "step") == "1 step"
    assert count_text(2, "process", "processes") == "2 processes"
    assert count_text(1240) == "1,240"


def test_percent_has_a_decimal_below_ten() -> None:
    assert share_text(0.014) == "1.4\u2009%"
    assert share_text(0.38) == "38\u2009%"


@pytest.mark.parametrize(
    ("early_s", "late_s", "text"),
    [
        (26 * 60, 34 * 60, "26 to 34 minutes"),
        (40, 95, "40 to 95 seconds"),
        (40, 130, "less than 3 minutes"),
        (61, 130, "1 to 3 minutes"),
        (2 * 3600, 9 * 3600, "2 to 9 hours"),
        (3.2, 3.9, "3 to 4 seconds"),
        (1, 1, "1 second"),
    ],
)
def test_a_range_of_time_is_in_one_unit_and_never_one_false_number(
    early_s: float, late_s: float, text: str
) -> None:
    assert duration_range(early_s, late_s) == text


def test_a_duration_has_the_unit_that_suits_it() -> None:
    assert (duration_text(1), duration_text(600), duration_text(7200)) == (
        "1 second",
        "10 minutes",
        "2 hours",
    )


def test_a_place_is_told_without_its_folders() -> None:
    assert place_text("/home/u/train.py", 56) == "train.py:56"
    assert place_text("C:\\job\\train.py", 0) == "train.py"
    assert place_text("<ipython-input-3>", 2) == "<ipython-input-3>:2"


def test_the_longest_wording_that_fits_is_taken() -> None:
    assert fitting("a" * 200, "short") == "short"
    cut = fitting("a" * 200, "b" * 150)
    assert (len(cut), cut[-1]) == (MAX_SENTENCE, "…")
