from __future__ import annotations

import site
from pathlib import Path

import pytest

from vramscope.startup.startup_file import NAME, has_startup_file

LINE = (Path(__file__).parents[3] / "agent" / NAME).read_text()


def test_it_is_looked_for_where_python_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path / "more")])
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    assert not has_startup_file()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / NAME).write_text(LINE)
    assert has_startup_file()


def test_its_line_is_one_that_python_runs_and_it_asks_before_it_imports() -> None:
    # Of a .pth file, Python runs the lines that begin so, and takes others for folders.
    assert LINE.startswith("import ")
    assert LINE.count("\n") == 1
    assert LINE.index("in os.environ") < LINE.index("vramscope.startup")


def test_an_installation_that_is_gone_is_silent(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VRAMSCOPE_ATTACH", "1")
    monkeypatch.setitem(__import__("sys").modules, "vramscope.startup", None)
    exec(LINE, {})
    assert capfd.readouterr() == ("", "")
