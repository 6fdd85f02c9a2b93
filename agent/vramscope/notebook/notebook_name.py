"""The name of the notebook that a kernel belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

DEFAULT_NAME: Final = "notebook"
# Set by the Jupyter server, and by the editor that calls itself VS Code.
_SESSION_VARIABLE: Final = "JPY_SESSION_NAME"
_EDITOR_NAME: Final = "__vsc_ipynb_file__"


def notebook_name(environ: Mapping[str, str], names: Mapping[str, object]) -> str:
    """File name of the notebook without its ending, else ``"notebook"``.

    It is the same after the kernel was restarted, so that the runs of a notebook go by one name.

    Args:
        environ: variables of the kernel.
        names: what is defined in the notebook.
    """
    for path in (environ.get(_SESSION_VARIABLE), names.get(_EDITOR_NAME)):
        if isinstance(path, str):
            stem, ending = os.path.splitext(os.path.basename(path))
            # A console has a session too, whose name is a number that says nothing.
            if ending == ".ipynb" and stem.strip() and stem.isprintable():
                return stem.strip()[:200]
    return DEFAULT_NAME
