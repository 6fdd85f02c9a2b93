from __future__ import annotations

import pytest

from vramscope.cli.one_line_parser import OneLineParser
from vramscope.cli.problem import Problem


@pytest.fixture
def parser() -> OneLineParser:
    parser = OneLineParser(prog="vramscope fly", description="Fly somewhere.")
    parser.add_argument("--height", type=int)
    return parser


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--height", "high"], "argument --height: invalid int value: 'high'"),
        (["--height"], "argument --height: expected one argument"),
        (["nowhere"], "unrecognized arguments: nowhere"),
    ],
)
def test_a_complaint_is_one_line_that_says_where_the_usage_is(
    parser: OneLineParser,
    words: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(Problem) as problem:
        parser.parse_args(words)
    assert str(problem.value) == f"{complaint} (see vramscope fly --help)"
    assert problem.value.exit_code == 2
    assert capsys.readouterr() == ("", "")


def test_help_is_argparses_own(parser: OneLineParser, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--help"])
    assert ended.value.code == 0
    assert "Fly somewhere." in capsys.readouterr().out
