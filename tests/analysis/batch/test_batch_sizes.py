"""How many samples a step had: what was seen, else what was told, else nothing."""

from __future__ import annotations

import numpy as np

from tests.support.made_ranks import rows_of
from vramscope_analysis.batch.batch_sizes import batch_sizes, passes
from vramscope_analysis.evidence.columns import UNKNOWN


def test_what_was_seen_counts_more_than_what_is_told() -> None:
    rows = rows_of(3, {"step.batch_size": [8, UNKNOWN, UNKNOWN], "user.batch_size": [64, 64, 0]})
    np.testing.assert_array_equal(batch_sizes(rows), [8, 64, np.nan])


def test_passes_are_known_only_where_they_were_counted() -> None:
    np.testing.assert_array_equal(passes(rows_of(2, {"step.batch_count": [2, 0]})), [2, np.nan])
    assert np.isnan(passes(rows_of(2, {}))).all()
