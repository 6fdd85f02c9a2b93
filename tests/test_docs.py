"""The documentation names only what exists, and misses none of what it promises to list."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from vramscope.config import load_config
from vramscope_protocol.series import SERIES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("changes/*.md")])
TOP_LEVEL = "protocol|agent|analysis|server|frontend|tests|docs|examples|scripts|benchmarks"
PATH = re.compile(rf"(?<![\w/.])((?:{TOP_LEVEL})/[\w./-]+)")
LINK = re.compile(r"\]\(([^)#\s]+)?(?:#([\w-]+))?\)")

NAMED_DEFAULTS = (
    *("rate_hz", "cost_budget", "peaks", "parts_budget", "outbox_bytes", "spool_bytes"),
    *("emulate", "capacity", "exit_timeout_s", "local_server"),
)


def page(name: str) -> str:
    return (ROOT / name).read_text()


def table(text: str) -> dict[str, list[str]]:
    """Rows of tables whose first cell is a name in backticks."""
    found = re.findall(r"^\| `([^`]+)` \|(.*)\|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(path.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        there = (path.parent / target).resolve() if target else path
        if not there.exists() or (anchor and anchor not in anchors(there.read_text())):
            broken.append(f"{target}#{anchor}" if anchor else target)
    assert broken == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(path: Path) -> None:
    named = {name.rstrip(".,") for name in PATH.findall(path.read_text())}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_every_series_is_explained() -> None:
    explained = table(page("docs/concepts.md"))
    assert explained == {name: [s.unit, s.definition] for name, s in SERIES.items()}


def test_every_option_of_the_agent_is_documented() -> None:
    agent, _, _server = page("docs/configuration.md").partition("## Server")
    documented = {name: cells[0] for name, cells in table(agent).items()}
    with pytest.raises(ValueError, match="expected one of: ") as unknown:
        load_config({}, no_such_option=1)
    names = str(unknown.value).partition("expected one of: ")[2].split(", ")
    assert documented == {name: f"`VRAMSCOPE_{name.upper()}`" for name in names}
    defaults = {name: cells[1] for name, cells in table(agent).items()}
    given = {name: defaults[name].strip("`") for name in NAMED_DEFAULTS}
    # Giving what is documented as the default changes nothing.
    assert load_config({}, **given) == load_config({})


def test_every_option_of_the_server_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    from vramscope_server.__main__ import main

    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    offered = set(re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    documented = table(page("docs/configuration.md").partition("## Server")[2])
    assert set(documented) == offered


def test_every_option_and_setting_of_replay_is_documented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from vramscope.cli import main
    from vramscope_analysis.allocator.settings_parser import OPTION_SINCE

    with pytest.raises(SystemExit):
        main(["replay", "--help"])
    offered = set(re.findall(r"^  (--[a-z]+)", capsys.readouterr().out, re.MULTILINE))
    text = page("docs/replay.md")
    documented = {name.split()[0] for name in table(text.partition("## Options")[2])}
    assert offered <= documented
    _, _, named = text.partition("Keys of `--set`: ")
    assert set(re.findall(r"`(\w+)`", named.partition(".")[0])) == set(OPTION_SINCE)


def test_sessions_of_replay_are_what_it_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vramscope.cli import main

    monkeypatch.chdir(ROOT)
    sessions = re.findall(
        r"^    \$ vramscope (.+)\n\n((?:    .*\n|\n)+)", page("docs/replay.md"), re.M
    )
    assert len(sessions) == 2
    for command, shown in sessions:
        assert main(command.split()) == 0
        assert capsys.readouterr().out.splitlines() == textwrap.dedent(shown).strip().splitlines()


def test_keys_of_replay_are_those_that_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    from vramscope.cli import main

    documented = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", page("docs/replay.md"), re.MULTILINE)
    assert len(documented) >= 10
    assert main(["replay", str(ROOT / "tests/data/traces/hf__default.pickle.gz"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    named = {key for cell in documented for key in re.findall(r"\w+", cell)} - {"SNAPSHOT"}
    assert named - printed.keys() == set()


def test_every_failure_names_the_test_that_shows_it() -> None:
    text = page("docs/failure-modes.md")
    rows = [line for line in text.splitlines() if re.match(r"\| (?!what fails)", line)]
    assert len(rows) >= 12
    for row in rows:
        named = re.findall(r"`(tests/[\w/.]+\.py)`", row.split("|")[-2])
        assert named, f"no test is named for: {row}"


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs/decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_readme_begins_with_what_it_is_and_a_picture() -> None:
    text = page("README.md")
    assert text.startswith("# vramscope\n")
    assert text.index("](docs/images/") < text.index("\n## ")
    assert "make demo" in text
    assert "vramscope run train.py" in text


def test_changelog_fragments_have_a_known_kind() -> None:
    fragments = [p.name for p in (ROOT / "changes").iterdir() if p.name != "README.md"]
    kinds = "feature|bugfix|doc|removal|misc"
    assert fragments
    assert all(re.fullmatch(rf"(\d+|\+[\w-]+)\.({kinds})\.md", name) for name in fragments)
