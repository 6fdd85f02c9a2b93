from __future__ import annotations

import pytest

from vramscope.notebook.notebook_name import notebook_name


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ("/home/ada/Fine tuning.ipynb", "Fine tuning"),
        ("train.ipynb", "train"),
        ("3f2b6c1e-4a1d-4f0c-9a51-0a9b1c2d3e4f", "notebook"),
        ("/home/ada/.ipynb", "notebook"),
        ("", "notebook"),
    ],
)
def test_the_name_is_that_of_the_file(session: str, expected: str) -> None:
    assert notebook_name({"JPY_SESSION_NAME": session}, {}) == expected


def test_an_editor_says_it_among_the_names_of_the_notebook() -> None:
    assert notebook_name({}, {"__vsc_ipynb_file__": "/home/ada/probe.ipynb"}) == "probe"
    assert notebook_name({}, {"__vsc_ipynb_file__": 5}) == "notebook"


def test_a_name_is_one_that_a_run_may_have() -> None:
    assert len(notebook_name({"JPY_SESSION_NAME": f"{'x' * 300}.ipynb"}, {})) == 200
    assert notebook_name({"JPY_SESSION_NAME": "a\x1b[2J.ipynb"}, {}) == "notebook"
