"""Acting on all ranks of a run from the page: a real server, and eight ranks by script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.acting_page import ActedRun, acted_run, take
from tests.support.scripted_agent import GIB, ScriptedAgent
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

RANKS = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def run(browser: Browser, server: ServerProcess) -> Iterator[ActedRun]:
    with acted_run(browser, server) as opened:
        yield opened


@pytest.fixture
def ranks(run: ActedRun) -> list[ScriptedAgent]:
    return run.trains(*(run.agent(rank, RANKS) for rank in range(RANKS)))


def memory(reserved_gib: float) -> dict[str, Any]:
    return {
        "reserved_bytes": int(reserved_gib * GIB),
        "allocated_bytes": 1 * GIB,
        "active_bytes": 1 * GIB,
        "inactive_split_bytes": GIB // 4,
    }


def answer_dry_run(agents: list[ScriptedAgent], name: str) -> None:
    for agent, command in zip(agents, take(agents, name), strict=True):
        assert command.dry_run
        agent.update(
            command,
            "done",
            step=50,
            before=memory(2),
            after=memory(1),
            returned_bytes=GIB,
            result={"held_by": [{"what": "train.py:56", "bytes": GIB // 4, "segments": 3}]},
        )


def test_all_ranks_are_prepared_and_act_at_one_step(
    run: ActedRun, ranks: list[ScriptedAgent]
) -> None:
    page = run.page()
    page.get_by_role("button", name="Free cache…").click()
    answer_dry_run(ranks, "empty_cache")
    dialog = page.locator("dialog")
    expect(dialog.locator(".dry-run .sentence")).to_have_text(
        re.compile(r"^Would return 8\.0 GiB in all")
    )
    expect(dialog.get_by_role("region", name="Who holds what stays")).to_contain_text(
        "train.py:562.0 GiB24 segments"
    )
    expect(dialog).to_contain_text("at the end of the same step on all 8 ranks, or on none of them")
    primary = dialog.locator(".primary")
    expect(primary).to_have_text("Free 8.0 GiB on all 8 ranks")
    primary.focus()
    page.keyboard.press("Enter")
    expect(primary).to_have_text("Free 8.0 GiB on all 8 ranks")
    assert len(run.server.get(run.commands_path())["commands"]) == 1  # the dry run
    page.keyboard.press("Control+Enter")
    commands = take(ranks, "empty_cache")
    assert not any(command.dry_run for command in commands)
    assert len({command.at_step for command in commands}) == 1
    for agent, command in zip(ranks[:6], commands[:6], strict=True):
        agent.prepared(command)
    expect(primary).to_have_text("Prepared 6 of 8…")
    expect(dialog.locator(".rank-progress")).to_contain_text("waiting for ranks 6 and 7")
    for agent, command in zip(ranks[6:], commands[6:], strict=True):
        agent.prepared(command)
    for agent in ranks:
        assert agent.wait_decision().run
    step = commands[0].at_step
    for agent, command in zip(ranks, commands, strict=True):
        agent.update(
            command, "done", step=step, before=memory(2), after=memory(1), returned_bytes=GIB
        )
    expect(dialog).to_have_count(0)
    receipt = page.locator(".rail .receipt")
    expect(receipt.locator("h3")).to_have_text("8.0 GiB returned to the device.")
    expect(receipt).to_contain_text("Predicted 8.0 GiB, got 8.0 GiB.")
    expect(receipt.locator("tbody tr")).to_have_count(RANKS)
    # Twenty steps later half of it was taken back.
    assert step is not None
    for agent in ranks:
        agent.steps(step - 50 + 25, step=51, reserved_bytes__all__current=half(step - 50 + 25))
        agent.samples(5, step=step + 25)
        agent.wait_acked()
    expect(page.locator(".mark[data-kind=command]")).to_have_count(1)
    later = receipt.locator("tbody tr").first.locator("td").last
    expect(later).to_have_text("512.0")


def half(count: int) -> list[int]:
    return [GIB + GIB // 2] * count


def test_a_rank_that_refuses_stops_all_of_them_with_its_reason(
    run: ActedRun, ranks: list[ScriptedAgent]
) -> None:
    page = run.page()
    page.get_by_role("button", name="Free cache…").click()
    answer_dry_run(ranks, "empty_cache")
    dialog = page.locator("dialog")
    expect(dialog.locator(".primary")).to_be_enabled()
    page.keyboard.press("Control+Enter")
    commands = take(ranks, "empty_cache")
    for agent, command in zip(ranks[:7], commands[:7], strict=True):
        agent.prepared(command)
    ranks[7].update(commands[7], "refused", message="a stream is capturing.")
    for agent, command in zip(ranks[:7], commands[:7], strict=True):
        decision = agent.wait_decision()
        assert not decision.run
        agent.update(command, "refused", message=f"{decision.reason} Nothing was changed.")
    problem = dialog.locator(".problem")
    expect(problem).to_have_text(re.compile(r"^Refused: .*[Rr]ank 7.*a stream is capturing"))
    page.keyboard.press("Escape")
    receipt = page.locator(".rail .receipt")
    expect(receipt).to_have_class(re.compile("amber"))
    expect(receipt.locator("h3")).to_have_text(re.compile("^Refused: "))


def test_what_changes_training_is_confirmed_once_more(
    run: ActedRun, ranks: list[ScriptedAgent]
) -> None:
    page = run.page("/commands")
    page.locator(".command-forms summary", has_text="Training").click()
    choose(page, "Change the batch size").click()
    dialog = page.locator("dialog")
    primary = dialog.locator(".primary")
    expect(primary).to_be_disabled()
    page.get_by_label("Samples of one rank").fill("48")
    expect(primary).to_have_text("Dry run")
    primary.click()
    for agent, command in zip(ranks, take(ranks, "set_batch_size"), strict=True):
        assert command.dry_run
        assert command.params["batch_size"] == 48
        agent.update(
            command,
            "done",
            step=50,
            before={"batch_size": 32, "accumulation": 3},
            after={"batch_size": 48, "accumulation": 2},
            message="48 samples in 2 passes keep the global batch of 768.",
        )
    expect(dialog.locator(".dry-run .sentence")).to_have_text(
        "48 samples in 2 passes keep the global batch of 768."
    )
    expect(dialog.locator("tbody tr").first).to_have_text("Samples of one rank3248")
    expect(primary).to_have_text("Set the batch size to 48 on all 8 ranks")
    expect(primary).to_be_disabled()
    consent = dialog.locator(".consent")
    expect(consent).to_contain_text("Each forward pass takes another number of samples")
    consent.locator("input").check()
    expect(primary).to_be_enabled()
    # What is typed after the dry run was not measured.
    page.get_by_label("Samples of one rank").fill("64")
    expect(primary).to_have_text("Dry run")
    page.get_by_label("Samples of one rank").fill("48")
    primary.click()
    commands = take(ranks, "set_batch_size")
    for agent, command in zip(ranks, commands, strict=True):
        assert not command.dry_run
        agent.prepared(command)
    for agent, command in zip(ranks, commands, strict=True):
        assert agent.wait_decision().run
        text = "Rolled back: the first step ran out of memory; 32 samples again."
        agent.update(command, "failed", step=command.at_step, message=text)
    expect(dialog.locator(".problem")).to_have_text(
        "Rolled back: the first step ran out of memory; 32 samples again."
    )


def choose(page: Page, title: str) -> Locator:
    """The button of a command on the page of commands."""
    return page.locator(".command-forms li", has_text=title).get_by_role("button")


def test_a_paused_run_says_so_and_is_resumed_with_one_press(
    run: ActedRun, ranks: list[ScriptedAgent]
) -> None:
    page = run.page()
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Pause…").click()
    dialog = page.locator("dialog")
    dialog.get_by_label("At most").fill("120")
    dialog.locator(".consent input").check()
    dialog.locator(".primary").click()
    commands = take(ranks, "pause")
    for agent, command in zip(ranks, commands, strict=True):
        assert command.params == {"max_s": 120}
        agent.prepared(command)
    for agent, command in zip(ranks, commands, strict=True):
        assert agent.wait_decision().run
        agent.update(command, "running")
    expect(page.locator("h1")).to_contain_text("Paused")
    expect(page.locator("h1")).to_contain_text("on all 8 ranks: training stands still.")
    expect(page.locator(".pill")).to_contain_text("paused")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Resume", exact=True).click()
    for agent, command in zip(ranks, take(ranks, "resume"), strict=True):
        agent.update(command, "done", message="Training goes on.")
    for agent, command in zip(ranks, commands, strict=True):
        agent.update(command, "done", step=command.at_step, message="Stood still for 3.0 s.")
    expect(page.locator("h1")).not_to_contain_text("Paused")


def test_a_command_of_the_job_itself_has_its_form(
    run: ActedRun, ranks: list[ScriptedAgent]
) -> None:
    page = run.page("/commands")
    row = page.locator(".command-forms li", has_text="save")
    expect(row).to_contain_text("Write a checkpoint now.")
    row.get_by_role("button").click()
    dialog = page.locator("dialog")
    primary = dialog.locator(".primary")
    expect(primary).to_be_disabled()
    expect(primary).to_have_attribute("title", "name: a text is needed.")
    page.get_by_label("name").fill("<img src=x onerror=alert(1)>")
    page.get_by_label("keep").fill("12")
    expect(primary).to_have_attribute("title", "keep: a whole number from 1 to 9.")
    page.get_by_label("keep").fill("5")
    page.get_by_label("format").select_option("safetensors")
    page.get_by_label("compress").check()
    page.get_by_role("button", name="Rank 0").click()
    expect(primary).to_have_text("Run save on rank 0")
    primary.click()
    [command] = take(ranks[:1], "user.save")
    assert command.params == {
        "name": "<img src=x onerror=alert(1)>",
        "keep": 5,
        "format": "safetensors",
        "compress": True,
    }
    ranks[0].update(command, "done", step=51, result={"path": "/tmp/<b>5</b>.pt"}, message="Saved.")
    expect(dialog).to_have_count(0)
    receipt = page.get_by_role("region", name="Receipt", exact=True)
    expect(receipt).to_contain_text("/tmp/<b>5</b>.pt")
    expect(receipt.locator("h3").first).to_have_text("Saved.")


def test_ranks_that_declare_different_commands_are_told(run: ActedRun) -> None:
    agents = [run.agent(rank, 2) for rank in range(2)]
    agents[1].rank.user_commands = []
    run.trains(*agents)
    row = run.page("/commands").locator(".command-forms li", has_text="save")
    expect(row.locator(".note")).to_have_text(
        "The ranks differ: not declared on rank 1. The form is that of rank 0."
    )


def test_an_old_dry_run_is_taken_again_and_done_only_if_it_says_the_same(
    run: ActedRun,
) -> None:
    [agent] = run.trains(run.agent())
    page = run.page()
    page.get_by_role("button", name="Free cache…").click()
    answer_dry_run([agent], "empty_cache")
    primary = page.locator("dialog .primary")
    expect(primary).to_have_text("Free 1.0 GiB on rank 0")
    agent.steps(10, step=51)
    agent.samples(5, step=60)
    agent.wait_acked()
    expect(page.locator(".pill")).to_contain_text("step 60")
    page.keyboard.press("Control+Enter")
    [again] = take([agent], "empty_cache")
    assert again.dry_run
    less = {"before": memory(2), "after": memory(1.5), "returned_bytes": GIB // 2}
    agent.update(again, "done", step=60, **less)
    expect(page.locator("dialog")).to_contain_text("it is different now. Nothing was changed")
    expect(primary).to_have_text("Free 512 MiB on rank 0")
    page.keyboard.press("Control+Enter")
    [command] = take([agent], "empty_cache")
    assert not command.dry_run
    agent.update(command, "done", step=61, **less)
    expect(page.locator("dialog")).to_have_count(0)
