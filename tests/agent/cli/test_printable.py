from __future__ import annotations

from vramscope.cli.printable import printable
from vramscope.cli.text_table import text_table


def test_what_could_steer_a_terminal_is_not_printed() -> None:
    assert printable("a\x1b[2J\x07b\rc\x9b31m\u202ed\te") == "a?[2J?b?c?31m?d?e"


def test_lines_and_letters_stay() -> None:
    assert printable("a line\nä 漢字 👩") == "a line\nä 漢字 👩"
    assert printable("a\nb\tc", keep="\t") == "a?b\tc"


def test_a_cell_of_a_table_is_one_line_of_harmless_characters() -> None:
    table = text_table([["run", "state"], ["a\nb\x1b[31m", "live"]])
    assert table.splitlines() == ["run       state", "a?b?[31m  live"]
