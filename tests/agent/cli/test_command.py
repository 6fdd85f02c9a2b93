from __future__ import annotations

import io
import json
from typing import Any

import pytest

from tests.support.fake_api import FakeApi
from vramscope.cli import main

PATH = "/api/v1/runs/my%20run/commands"


def command(state: str, **receipt: Any) -> dict[str, Any]:
    receipts = {"0": {"state": state, **receipt}} if receipt else {}
    return {"id": "c1", "name": "empty_cache", "state": state, "receipts": receipts}


def api(*states: dict[str, Any], post: tuple[int, Any] = (202, command("queued"))) -> FakeApi:
    return FakeApi({f"POST {PATH}": [post], f"GET {PATH}/c1": [(200, state) for state in states]})


def call(fake: FakeApi, *words: str, name: str = "empty_cache") -> int:
    return main(["command", "my run", name, "--url", fake.url, "--token", "t", *words])


class Terminal(io.StringIO):
    """Somebody who answers."""

    def isatty(self) -> bool:
        return True


def test_it_waits_for_the_receipts_and_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    done = command("done", step=12, returned_bytes=3 << 29, took_s=0.0123, message="All well.")
    with api(command("running"), done) as fake:
        assert call(fake, "--ranks", "0,1", "--dry-run", "--param", "a=1", "--param", "b=x") == 0
    assert capsys.readouterr().out == (
        "empty_cache c1: done\n"
        "  rank 0: done, at step 12, 1.50 GiB returned, took 12.3 ms\n"
        "    All well.\n"
    )
    line, body, headers = fake.requests[0]
    assert line == f"POST {PATH}"
    assert body == {
        "name": "empty_cache",
        "ranks": [0, 1],
        "params": {"a": 1, "b": "x"},
        "dry_run": True,
        "deadline_s": 30.0,
    }
    assert headers["Authorization"] == "Bearer t"
    assert headers["X-Vramscope-Origin"] == "cli"


def test_what_changes_training_is_confirmed_by_an_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))  # no terminal: nobody is there
    with api(command("done")) as fake:
        assert call(fake, "--param", "max_s=5", name="pause") == 2
        assert fake.requests == []
        assert capsys.readouterr().err == (
            "vramscope: pause changes what my run trains, or when: say --yes to confirm it\n"
        )
        assert call(fake, "--param", "max_s=5", "--yes", name="pause") == 0
        assert call(fake, "--param", "batch_size=5", "--dry-run", name="set_batch_size") == 0
        assert call(fake, name="resume") == 0


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("Yes\n", 0), ("\n", 1), ("no\n", 1)])
def test_or_at_the_terminal(
    answer: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    with api(command("done")) as fake:
        assert call(fake, name="stop") == code
        assert bool(fake.requests) == (code == 0)
    asked = capsys.readouterr().err
    assert asked.startswith("stop: End training after a step")
    assert "This changes what my run trains, or when. Go on? [y/N] " in asked
    assert ("stop was not sent" in asked) == (code == 1)


@pytest.mark.parametrize("changes", [True, False])
def test_what_the_job_says_changes_training_is_confirmed_as_well(
    changes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"name": "user.warm_up", "summary": "Begin anew.", "changes_training": changes}
    with api(command("done")) as fake:
        fake.answers["GET /api/v1/runs/my%20run"] = [
            (200, {"ranks": [{"user_commands": [own]}]})
        ] * 3
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
        assert call(fake, name="user.warm_up") == (2 if changes else 0)
        assert ("say --yes to confirm it" in capsys.readouterr().err) is changes
        monkeypatch.setattr("sys.stdin", Terminal("y\n"))
        assert call(fake, name="user.warm_up") == 0
        assert capsys.readouterr().err.startswith("user.warm_up: Begin anew.") is changes
        assert call(fake, "--yes", name="user.warm_up") == 0


def test_texts_of_the_jobs_own_commands_stay_texts(capsys: pytest.CaptureFixture[str]) -> None:
    params = [
        {"name": "tag", "kind": "str"},
        {"name": "kind", "kind": "choice", "choices": ["1", "2"]},
        {"name": "keep", "kind": "int"},
    ]
    run = {
        "ranks": [
            {"rank": 0},
            {"rank": 1, "user_commands": [{"name": "user.save", "params": params}]},
        ]
    }
    fake = api(command("done"))
    fake.answers["GET /api/v1/runs/my%20run"] = [(200, run)]
    with fake:
        words = ("--param", "tag=5", "--param", "kind=1", "--param", "keep=3")
        assert call(fake, *words, name="user.save") == 0
    posted = next(body for line, body, _ in fake.requests if line.startswith("POST"))
    assert posted["name"] == "user.save"
    assert posted["params"] == {"tag": "5", "kind": "1", "keep": 3}


def test_a_note_of_the_server_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with api({**command("done"), "note": "Each rank runs it at its own next step."}) as fake:
        assert call(fake) == 0
    assert "\n  Each rank runs it at its own next step.\n" in capsys.readouterr().out


@pytest.mark.parametrize("state", ["failed", "refused", "expired"])
def test_what_was_not_done_is_exit_code_1(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    with api(command(state, message="no boundary came")) as fake:
        assert call(fake) == 1
    assert "no boundary came" in capsys.readouterr().out


def test_json_is_what_the_server_says(capsys: pytest.CaptureFixture[str]) -> None:
    with api(command("done", result={"a": 1})) as fake:
        assert call(fake, "--json") == 0
    assert json.loads(capsys.readouterr().out) == command("done", result={"a": 1})


def test_wait_0_does_not_wait(capsys: pytest.CaptureFixture[str]) -> None:
    with api() as fake:
        assert call(fake, "--wait", "0") == 0
        assert len(fake.requests) == 1
    assert capsys.readouterr().out == "empty_cache c1: queued\n"


def test_wait_without_a_number_waits_as_long_as_without_the_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with api(command("running"), command("done")) as fake:
        assert call(fake, "--wait") == 0
    assert fake.requests[0][1]["deadline_s"] == 30.0
    assert "done" in capsys.readouterr().out


def test_a_text_result_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with api(command("done", result="|==== summary ====|\n| line |")) as fake:
        assert call(fake) == 0
    assert "\n|==== summary ====|\n| line |\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (404, {"code": "not_found", "message": "no run named 'my run'"}, 2),
        (401, {"code": "token_expired", "message": "the token expired"}, 2),
        (400, {"code": "bad_request", "message": "empty_cache takes no parameters"}, 2),
        (403, {"code": "forbidden", "message": "the token lacks the scope control"}, 1),
        (409, {"code": "conflict", "message": "the run has ended"}, 1),
    ],
)
def test_a_refusal_is_one_line(
    status: int, error: dict[str, str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with api(post=(status, {"error": error})) as fake:
        assert call(fake) == code
    captured = capsys.readouterr()
    assert captured.err.startswith(f"vramscope: {error['message']}")
    assert captured.err.count("\n") == 1
    if error["code"] == "token_expired":
        assert "make a new one with: vramscope token" in captured.err


@pytest.mark.parametrize("answer", [(500, "oops"), (202, "<html>"), (404, {"detail": "x"})])
def test_something_else_that_answers_is_said(
    answer: tuple[int, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with api(post=answer) as fake:
        assert call(fake) == 2
        assert capsys.readouterr().err == (
            f"vramscope: what answers at {fake.url} is not a vramscope server\n"
        )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ranks", "first"], "--ranks: expected all or numbers"),
        (["--param", "novalue"], "--param: expected KEY=VALUE"),
    ],
)
def test_bad_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with api() as fake:
        assert call(fake, *words) == 2
        assert fake.requests == []
    assert message in capsys.readouterr().err
