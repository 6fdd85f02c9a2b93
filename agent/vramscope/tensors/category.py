"""The categories that live memory is told apart by."""

from __future__ import annotations

from typing import Final

NONE: Final = 0
"""Activations, batches, workspaces: every tensor that is of none of the categories below."""

PARAMETERS: Final = 1
GRADIENTS: Final = 2
OPTIMIZER_STATE: Final = 3
BUFFERS: Final = 4

CODES: Final = (PARAMETERS, GRADIENTS, OPTIMIZER_STATE, BUFFERS)
"""In the order of the columns."""

COLUMNS: Final = (
    "category.parameters_bytes",
    "category.gradients_bytes",
    "category.optimizer_state_bytes",
    "category.buffers_bytes",
)
"""Columns of a step row, one a category."""

KEPT_COLUMN: Final = "category.gradients_kept_bytes"
