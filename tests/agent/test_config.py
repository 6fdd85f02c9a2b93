from __future__ import annotations

import os
from pathlib import Path

import pytest

from vramscope.config import OPTIONS, Config, ConfigError, load_config, parse_size
from vramscope.history.rule import HistoryRule
from vramscope.transport.address import ServerAddress


def test_without_anything_every_option_has_its_default() -> None:
    config = load_config({})
    assert config == Config(spool_dir=config.spool_dir)
    assert config.spool_dir.endswith(f"/vramscope-{os.getuid()}-spool")


def test_every_option_is_read_from_its_variable() -> None:
    config = load_config(
        {
            "VRAMSCOPE_URL": "http://gpu-box:8470/",
            "VRAMSCOPE_TOKEN": "secret",
            "VRAMSCOPE_RUN": "my run",
            "VRAMSCOPE_LAUNCH_ID": "7",
            "VRAMSCOPE_RATE_HZ": "2.5",
            "VRAMSCOPE_COST_BUDGET": "0.01",
            "VRAMSCOPE_FIELDS": "a, b",
            "VRAMSCOPE_ALLOW": "observe",
            "VRAMSCOPE_OUTBOX_BYTES": "4MiB",
            "VRAMSCOPE_SPOOL_BYTES": "0",
            "VRAMSCOPE_PEAKS": "0",
            "VRAMSCOPE_PARTS_BUDGET": "0.01",
            "VRAMSCOPE_SPOOL_DIR": "/scratch/x",
            "VRAMSCOPE_SNAPSHOT_BYTES": "2MiB",
            "VRAMSCOPE_HISTORY_RULE": "above 80% for 5 steps",
            "VRAMSCOPE_EXPLAIN_GROWTH": "0",
            "VRAMSCOPE_OOM_REPORTS": "0",
            "VRAMSCOPE_EMULATE": "yes",
            "VRAMSCOPE_CAPACITY": "24GiB",
            "VRAMSCOPE_EXIT_TIMEOUT_S": "0.5",
            "VRAMSCOPE_LOCAL_SERVER": "0",
        }
    )
    assert config == Config(
        address=ServerAddress("gpu-box", 8470),
        token="secret",
        run="my run",
        launch_id="7",
        rate_hz=2.5,
        cost_budget=0.01,
        peaks=False,
        parts_budget=0.01,
        fields=("a", "b"),
        allow="observe",
        is_allow_given=True,
        outbox_bytes=4 << 20,
        spool_bytes=0,
        spool_dir="/scratch/x",
        snapshot_bytes=2 << 20,
        history_rule=HistoryRule(80, 5),
        explain_growth=False,
        oom_reports=False,
        emulate=True,
        capacity_bytes=24 << 30,
        exit_timeout_s=0.5,
        local_server=False,
    )
    assert len(OPTIONS) == 21


def test_an_argument_wins_over_its_variable_and_an_empty_variable_is_none() -> None:
    environ = {"VRAMSCOPE_RUN": "from the variable", "VRAMSCOPE_TOKEN": ""}
    config = load_config(environ, run="from the argument", url=None)
    assert (config.run, config.token, config.address) == ("from the argument", None, None)


@pytest.mark.parametrize(
    ("url", "allow"),
    [
        (None, "control"),
        ("http://127.0.0.1:8470", "control"),
        ("http://127.9.9.9", "control"),
        ("http://[::1]:8470", "control"),
        ("https://localhost", "control"),
        ("http://job.localhost:1", "control"),
        ("http://gpu-box:8470", "observe"),
        ("http://10.0.0.1:8470", "observe"),
        ("http://0.0.0.0:8470", "observe"),
        ("http://localhost.example.com", "observe"),
        ("http://127.0.0.1.example.com", "observe"),
    ],
)
def test_who_starts_the_job_has_to_want_commands_from_other_machines(
    url: str | None, allow: str
) -> None:
    config = load_config({}, url=url)
    assert (config.allow, config.observes_by_default) == (allow, allow == "observe")
    asked = load_config({"VRAMSCOPE_ALLOW": "control"}, url=url)
    assert (asked.allow, asked.observes_by_default) == ("control", False)
    assert not load_config({}, url=url, allow="observe").observes_by_default
    named = load_config({}, url=url, allow="user.save,stats")
    assert named.allow_commands == frozenset({"user.save", "stats"})


def test_allow_takes_names_of_commands() -> None:
    config = load_config({}, allow=["empty_cache", "stats"])
    assert config.allow == "control"
    assert config.allow_commands == frozenset({"empty_cache", "stats"})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8 << 30),
        ("8 gib", 8 << 30),
        ("1.5KiB", 1536),
        ("512MB", 512_000_000),
        ("2G", 2_000_000_000),
        ("1048576", 1 << 20),
        ("7B", 7),
        (4096, 4096),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "many", "-1", "8GiBs", "8 XB", -5, True, None, 1.5])
def test_what_is_not_a_size(text: object) -> None:
    with pytest.raises(ConfigError, match="expected a size such as 8GiB"):
        parse_size(text)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("rate_hz", "fast", "rate_hz: expected a rate in Hz from 0.1 to 100, got 'fast'"),
        ("rate_hz", "1000", "rate_hz: expected a rate in Hz from 0.1 to 100, got '1000'"),
        ("rate_hz", "nan", "rate_hz: expected a rate"),
        ("cost_budget", 2, "cost_budget: expected a fraction of one core"),
        ("parts_budget", -1, "parts_budget: expected a fraction of the step time"),
        ("url", "gpu-box:8470", "url: expected a server URL like http://127.0.0.1:8470"),
        ("allow", "everything", "allow: expected observe, control or command names"),
        ("emulate", "maybe", "emulate: expected 1 or 0, got 'maybe'"),
        ("fields", 5, "fields: expected names separated by commas"),
        ("fields", ",", "fields: expected names separated by commas"),
        ("capacity", "lots", "capacity: expected a size such as 8GiB"),
        ("capacity", "9" * 400, "capacity: expected a size below 8 EiB"),
        ("capacity", 10**400, "capacity: expected a size"),
        ("rate_hz", 10**400, "rate_hz: expected a rate"),
        ("run", "x" * 201, "run: expected a run name of 1 to 200 printable characters"),
        ("run", "a\nb", "run: expected a run name of 1 to 200 printable characters"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(option: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({}, **{option: value})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_bad_variable_is_named_as_such() -> None:
    with pytest.raises(ConfigError, match=r"^VRAMSCOPE_RATE_HZ: expected"):
        load_config({"VRAMSCOPE_RATE_HZ": "x"})


def test_a_bad_token_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"VRAMSCOPE_TOKEN": "s3cr3t\x00"})
    assert "s3cr3t" not in str(caught.value)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="no option named 'rate'"):
        load_config({}, rate=3)


def test_a_folder_relative_to_one_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(ConfigError, match="spool_dir: expected a folder, got 'relative'"):
        load_config({}, spool_dir="relative")
